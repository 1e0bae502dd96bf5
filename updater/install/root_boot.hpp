#pragma once
// The bootloader's part of an installation into a mounted file system: the files by which rasupd recognises it and by
// which it finds the menu. The program itself (GRUB's core image, U-Boot, a board's firmware) is put on the disk by its
// own tool. Errors: Usage (the place it needs is not there), Failed, Unsuitable.

#include <string>
#include <string_view>

#include "base/world.hpp"
#include "fence/repo.hpp"

namespace rasupd {

/// Usage when `bootloader` (grub, systemd-boot, extlinux, uboot, rpi, none or auto) needs a mount that `root` does not
/// have. Writes nothing.
Result<void> check_root_loader(const std::string& root, std::string_view bootloader);

/// Writes them beneath `root`, before the first deployment. auto and none write nothing. Returns what is left to do
/// for a person, empty when nothing.
Result<std::string> prepare_root_loader(const std::string& root, std::string_view bootloader,
                                        std::string_view architecture, const std::string& commit);

}  // namespace rasupd
