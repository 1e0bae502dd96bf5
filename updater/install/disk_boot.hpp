#pragma once
// The bootloader's part of an installation to a disk. Errors: Usage, Failed, Unsuitable, NoSpace.

#include <string>
#include <utility>
#include <vector>

#include "base/world.hpp"
#include "install/block_device.hpp"
#include "install/disk_layout.hpp"
#include "install/grub_image.hpp"

namespace rasupd {

enum class DiskLoader { grub, systemd_boot, none };
std::string_view loader_name(DiskLoader loader);

/// What `name` (auto, grub, systemd-boot, none) means for an architecture on this host. auto: GRUB when this
/// host has its modules, else systemd-boot.
Result<DiskLoader> choose_loader(const std::string& name, const std::string& architecture);

/// Everything of GRUB that can be made before the device is touched.
struct GrubImages {
  std::vector<std::pair<std::string, std::string>> efi;  ///< name beneath EFI/BOOT, bytes
  std::string core, boot_image;                          ///< BIOS; empty when this host cannot make it
  std::vector<std::string> warnings;
};
Result<GrubImages> make_grub_images(Runner& runner, const std::string& architecture, const std::string& work,
                                    const std::vector<Partition>& partitions);
/// The EFI programs into `esp_tree`; for BIOS, core.img into bios_boot and the code into the first sector.
Result<void> write_grub_images(const GrubImages& images, const BlockDevice& device,
                               const std::vector<Partition>& partitions, const std::string& esp_tree);

/// fstab(5) lines of what the initramfs does not mount. `esp`: where the ESP goes.
std::string fstab_lines(const std::vector<Partition>& partitions, const std::string& esp);
/// Appends them to etc/fstab of the deployment at `directory` (absolute).
Result<void> write_fstab(const std::string& directory, const std::string& lines);

}  // namespace rasupd
