#pragma once
// What every backend shares: the entries as libostree writes them, other systems' entries carried over a switch,
// the kernel copies compared. Private to this room.

#include <string>
#include <string_view>
#include <vector>

#include "bootloader/bootloader.hpp"

namespace rasupd::boot {

/// libostree makes the next loader.N/entries from scratch, so other systems' entries would be lost at every switch.
/// They cannot be put in before (it empties the directory first), hence there is a short window in which they are
/// not there; what boots by default is whole at every moment. Returns what could not be kept.
std::vector<std::string> carry_foreign(const std::string& sysroot, const Menu& before);

/// The entries read back: the first leads to the deployment `directory`, and its kernel and initramfs in /boot are
/// byte for byte the deployment's. Error Boot.
Result<void> verify_entries(const std::string& sysroot, const std::string& directory);

/// An error Boot about what reads back different.
tl::unexpected<Error> differs(std::string message);

/// The menu of today's entries with `deployment` filled in where the entry resolves.
Result<std::vector<Entry>> resolved_entries(const std::string& sysroot);

/// `path` of `sysroot`/boot/loader.N/NAME, N being the boot version.
std::string loader_file(const std::string& sysroot, unsigned boot_version, const std::string& name);
/// The boot version that boot/loader points to; error Boot when it is no link of libostree's.
Result<unsigned> current_boot_version(const std::string& sysroot);

/// Gives each entry the title that `next` has for its deployment: libostree writes its own.
void take_titles(std::vector<Entry>& entries, const Next& next);

/// A path of loader/entries on the file system of /boot: without the /boot prefix (sysroot.bootprefix).
std::string below_boot(const std::string& path);

/// Titles and arguments are text of a foreign origin: control characters become blanks.
std::string one_line(std::string_view text);

/// STATEROOT-BOOTCSUM: how libostree names a directory of kernels, in lower or (VFAT) upper case.
bool is_kernel_directory(std::string_view name);

/// settle_file_system() where this machine's firmware may be the next to read: only for the running system.
Result<void> settle_for_boot(const std::string& sysroot, const std::string& path);

/// Flushes the file system of `path` and brings it out of its journal, for boot loaders that read the disk without
/// replaying one (GRUB, U-Boot): ext4's checkpoint, else FIFREEZE and FITHAW, else no more than syncfs.
Result<void> settle_file_system(const std::string& path);

}  // namespace rasupd::boot
