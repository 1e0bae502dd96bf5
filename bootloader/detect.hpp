#pragma once
// Which bootloader starts this sysroot? By what lies on its disk and what the firmware says, never by guess
// (a machine may carry the remains of several). Reads only.

#include <memory>
#include <string>

#include "base/world.hpp"
#include "bootloader/bootloader.hpp"
#include "bootloader/esp_mount.hpp"

namespace rasupd::boot {

/// The first that shows evidence of having been installed for rasupd:
///   rpi           boot/firmware/autoboot.txt (Raspberry Pi bootloader configuration)
///   grub          boot/grub/grub.cfg that carries rasupd's mark (write_static_files())
///   systemd-boot  an EFI system partition at efi, boot/efi or boot/firmware with EFI/systemd/systemd-boot*.efi
///   uboot         boot/extlinux/extlinux.conf of rasupd's and an etc/fw_env.config of the running machine's or of
///                 another config root (a board's environment is not written for a disk that is mounted elsewhere)
///   extlinux      boot/extlinux/extlinux.conf of rasupd's
/// else plain entries. `running`: the sysroot is the running system's, so that an EFI system partition is
/// looked for where it is mounted. A systemd-boot without entries of rasupd's does not count beside another
/// bootloader; the firmware's word that systemd-boot started the machine counts more than any file. Error Boot
/// when the evidence cannot be read, when two bootloaders were set up (both are named), or when the firmware says
/// that systemd-boot started this machine and its partition is not mounted. `places`: where the running machine
/// tells of itself.
Result<std::unique_ptr<Bootloader>> detect(const World& world, bool running, const Places& places = {});

// The backends. `sysroot` is absolute.
std::unique_ptr<Bootloader> make_grub(std::string sysroot);
/// `esp`: where the EFI system partition is mounted, absolute.
std::unique_ptr<Bootloader> make_systemd_boot(std::string sysroot, std::string esp);
std::unique_ptr<Bootloader> make_extlinux(std::string sysroot);
/// U-Boot reads extlinux.conf and counts in its environment, which `runner` reads and writes by
/// fw_printenv(8) and fw_setenv(8) with the configuration file `fw_env` (absolute).
std::unique_ptr<Bootloader> make_uboot(std::string sysroot, Runner& runner, std::string fw_env);
/// `firmware`: the directory of the partition that holds autoboot.txt, absolute. `tryboot_flag`: where the firmware
/// says whether it started this machine on trial.
std::unique_ptr<Bootloader> make_rpi(std::string sysroot, std::string firmware,
                                     std::string tryboot_flag = "/proc/device-tree/chosen/bootloader/tryboot");

}  // namespace rasupd::boot
