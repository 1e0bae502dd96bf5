#include "install/disk_boot.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "base/files.hpp"
#include "image/platform.hpp"

namespace rasupd {
namespace {

constexpr std::size_t kMaxFstab = 1 << 20;

}  // namespace

std::string_view loader_name(DiskLoader loader) {
  if (loader == DiskLoader::grub) return "grub";
  return loader == DiskLoader::systemd_boot ? "systemd-boot" : "none";
}

Result<DiskLoader> choose_loader(const std::string& name, const std::string& architecture) {
  if (name == "none") return DiskLoader::none;
  if (name == "systemd-boot") return DiskLoader::systemd_boot;
  const bool present = !grub_image::present_targets(architecture).empty();
  if (name == "auto") return present ? DiskLoader::grub : DiskLoader::systemd_boot;
  if (present) return DiskLoader::grub;
  const std::string host = TRY(host_architecture());
  const std::string hint = grub_image::how_to_get(architecture, host);
  if (hint.empty()) return fail(Kind::Usage, "there is no GRUB for " + architecture, "--bootloader none");
  return fail(Kind::Failed, "this host has no GRUB modules for " + architecture, hint);
}

Result<GrubImages> make_grub_images(Runner& runner, const std::string& architecture, const std::string& work,
                                    const std::vector<Partition>& partitions) {
  GrubImages images;
  const Partition* boot = find_partition(partitions, PartitionUse::boot);
  const Partition* root = find_partition(partitions, PartitionUse::root);
  const Partition* bios = find_partition(partitions, PartitionUse::bios_boot);
  for (const grub_image::Target& target : grub_image::targets_of(architecture)) {
    const auto present = grub_image::present_targets(architecture);
    const bool here = std::any_of(present.begin(), present.end(),
                                  [&](const auto& one) { return one.format == target.format; });
    if (!here) {
      images.warnings.push_back(fmt::format("the disk does not start by {}: this host lacks {}",
                                            target.efi_file.empty() ? "BIOS" : "UEFI", target.package));
      continue;
    }
    std::string bytes =
        TRY(grub_image::make(runner, target, work, (boot ? boot : root)->uuid, boot != nullptr));
    if (!target.efi_file.empty()) {
      images.efi.emplace_back(target.efi_file, std::move(bytes));
      continue;
    }
    images.core = TRY(grub_image::patch_core(std::move(bytes), bios->start / kSector, bios->size / kSector));
    images.boot_image = TRY(grub_image::read_boot_image());
  }
  return images;
}

Result<void> write_grub_images(const GrubImages& images, const BlockDevice& device,
                               const std::vector<Partition>& partitions, const std::string& esp_tree) {
  const std::string folder = path_join(esp_tree, "EFI/BOOT");
  TRY(make_directories(folder));
  for (const auto& [name, bytes] : images.efi) TRY(write_file_durably(path_join(folder, name), bytes, 0644));
  if (images.core.empty()) return {};
  const Partition* bios = find_partition(partitions, PartitionUse::bios_boot);
  TRY(device.write_at(bios->start, images.core));
  const std::string old = TRY(device.read_at(0, kSector));
  const std::string sector = TRY(grub_image::boot_sector(images.boot_image, old, bios->start / kSector));
  return device.write_at(0, sector);
}

std::string fstab_lines(const std::vector<Partition>& partitions, const std::string& esp) {
  std::map<std::string, std::string> lines;  // mount -a goes from top to bottom: /boot before /boot/efi
  for (const Partition& one : partitions) {
    if (one.mount_point.empty() || one.use == PartitionUse::root)
      continue;  // root: the kernel argument root=
    const bool is_esp = one.use == PartitionUse::esp;
    const std::string& where = is_esp ? esp : one.mount_point;
    lines[where] = fmt::format("UUID={} {} {} {} 0 2\n", one.uuid, where, one.file_system,
                               is_esp ? "nofail,umask=0077" : "defaults");
  }
  std::string text;
  for (const auto& [where, line] : lines) text += line;
  return text;
}

Result<void> write_fstab(const std::string& directory, const std::string& lines) {
  const std::string path = path_join(directory, "etc/fstab");
  std::string text;
  struct stat info {};
  // A link would lead out of the deployment; it is replaced, never followed.
  if (::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
    text = TRY(read_file(path, kMaxFstab)).value_or("");
  }
  if (!text.empty() && text.back() != '\n') text += '\n';
  return write_file_durably(path, text + "# by rasupd install to-disk\n" + lines, 0644);
}

}  // namespace rasupd
