#pragma once
// GRUB as it lies outside of file systems: the EFI program on the ESP, and for BIOS the boot sector and
// core.img in the bios_boot partition. Both find /boot by the UUID of its file system and go on with the
// grub.cfg there. What grub-install and grub-bios-setup do, but for a disk that is not this machine's. The
// patching is pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/world.hpp"
#include "install/filesystem.hpp"

namespace rasupd::grub_image {

/// A directory of modules on this host and what can be made of it.
struct Target {
  std::string format;    ///< grub-mkimage --format, also the directory's name in /usr/lib/grub
  std::string package;   ///< Debian's
  std::string efi_file;  ///< name beneath EFI/BOOT; empty: BIOS
};
/// What GRUB offers for an architecture (Go's name), EFI first.
std::vector<Target> targets_of(std::string_view architecture);
/// Those of them whose modules are on this host.
std::vector<Target> present_targets(std::string_view architecture);

/// The commands that put the modules for `architecture` onto a Debian host of architecture `host`; empty when
/// there is no GRUB for it.
std::string how_to_get(std::string_view architecture, std::string_view host);

/// The configuration inside the image.
std::string early_config(std::string_view boot_uuid, bool separate_boot);

/// Runs grub-mkimage(1) in `work`; returns the image's bytes. Errors: Failed.
Result<std::string> make(Runner& runner, const Target& target, const std::string& work,
                         std::string_view boot_uuid, bool separate_boot);

/// core.img made to lie at `start_lba`: whole sectors, its first one told where the rest is. Error Failed
/// when it is no core.img or does not fit into `sectors`.
Result<std::string> patch_core(std::string core, std::uint64_t start_lba, std::uint64_t sectors);

/// The disk's first sector with boot.img's code that loads `core_lba`; the partition table and disk signature
/// of `old` stay. Error Failed when either is not one sector with the boot signature.
Result<std::string> boot_sector(std::string_view boot_image, std::string_view old, std::uint64_t core_lba);

/// boot.img of this host.
Result<std::string> read_boot_image();

}  // namespace rasupd::grub_image
