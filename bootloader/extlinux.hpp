#pragma once
// extlinux.conf as U-Boot reads it (doc/README.pxe of U-Boot): boot/extlinux/extlinux.conf is a link to
// loader/extlinux.conf, so that libostree's swap of `loader` turns the menu with the entries. Labels carry the
// deployment's id, which an environment can name. Paths are relative to boot/extlinux and hold with and without a file
// system of its own for /boot. Errors: Boot.

#include <string>
#include <vector>

#include "bootloader/bootloader.hpp"

namespace rasupd::boot::extlinux {

/// Makes the link boot/extlinux/extlinux.conf beneath `sysroot`. Idempotent. Error Boot when something else is there.
Result<void> write_static_files(const std::string& sysroot);
/// True when the link is there and what it leads to, if anything, is rasupd's.
Result<bool> is_installed(const std::string& sysroot);

/// The label of a deployment (CHECKSUM.SERIAL).
std::string label(const std::string& deployment);
/// The menu of `entries`, the first being the default. Looks into the deployments for device trees.
Result<std::string> menu_text(const std::string& sysroot, const std::vector<Entry>& entries);

/// Writes the menu of `next` where the switch will turn it on.
Result<void> prepare_menu(const std::string& sysroot, const Next& next);
/// After the switch: other systems' entries carried over, the menu as the entries are now. Returns what was lost.
Result<std::vector<std::string>> finish_menu(const std::string& sysroot, const Menu& before, const Next& next);
/// Does the menu say what the entries say?
Result<bool> in_step(const std::string& sysroot);
/// verify_entries(), and the menu says the same. Error Boot.
Result<void> verify_menu(const std::string& sysroot, const std::string& directory);

}  // namespace rasupd::boot::extlinux
