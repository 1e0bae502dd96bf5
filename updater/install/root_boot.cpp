#include "install/root_boot.hpp"

#include <sys/stat.h>

#include <optional>

#include "base/files.hpp"
#include "bootloader/extlinux.hpp"
#include "bootloader/grub.hpp"
#include "bootloader/rpi.hpp"
#include "install/esp.hpp"

namespace rasupd {
namespace {

/// A file system of its own; a missing directory is none.
bool is_mount(const std::string& path) {
  struct stat inside {
  }, parent{};
  return ::stat(path.c_str(), &inside) == 0 && ::stat((path + "/..").c_str(), &parent) == 0 &&
         inside.st_dev != parent.st_dev;
}

std::optional<std::string> esp_of(const std::string& root) {
  for (const char* place : {"boot/efi", "efi"}) {
    if (is_mount(path_join(root, place))) return path_join(root, place);
  }
  return std::nullopt;
}

}  // namespace

Result<void> check_root_loader(const std::string& root, std::string_view bootloader) {
  if (bootloader == "systemd-boot" && !esp_of(root)) {
    return fail(Kind::Usage, "--bootloader systemd-boot: no EFI system partition is mounted in " + root,
                "mount it at " + path_join(root, "boot/efi"));
  }
  if (bootloader == "rpi" && !is_mount(path_join(root, "boot/firmware"))) {
    return fail(Kind::Usage, "--bootloader rpi: no firmware partition is mounted in " + root,
                "mount the one with autoboot.txt at " + path_join(root, "boot/firmware"));
  }
  return {};
}

Result<std::string> prepare_root_loader(const std::string& root, std::string_view bootloader,
                                        std::string_view architecture, const std::string& commit) {
  if (bootloader == "grub") {
    TRY(boot::grub::write_static_files(root, is_mount(path_join(root, "boot"))));
    return "GRUB's own program is not written to the disk: grub-install --boot-directory=" + path_join(root, "boot") +
           " does that; keep its grub.cfg as it is";
  }
  if (bootloader == "systemd-boot") {
    const Repo repo = TRY(Repo::open(path_join(root, "ostree/repo")));
    TRY(put_systemd_boot(repo, commit, architecture, *esp_of(root)));
  }
  if (bootloader == "extlinux" || bootloader == "uboot") TRY(boot::extlinux::write_static_files(root));
  if (bootloader == "uboot") {
    return "U-Boot counts once the machine has an etc/fw_env.config; until then its extlinux.conf is all that is used";
  }
  if (bootloader == "rpi") TRY(boot::rpi::write_static_files(path_join(root, "boot/firmware")));
  return "";
}

}  // namespace rasupd
