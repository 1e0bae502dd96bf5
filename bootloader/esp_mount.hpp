#pragma once
// Where the EFI system partition is, and what the firmware says started this machine. Reads only. Error Boot.

#include <optional>
#include <string>

#include "base/result.hpp"

namespace rasupd::boot {

/// Where the running machine says so; tests put files of their own there.
struct Places {
  std::string efivars = "/sys/firmware/efi/efivars";
  std::string mountinfo = "/proc/self/mountinfo";
};

/// The mounted partition of the running system: vfat at /efi, /boot/efi or /boot, in this order.
Result<std::optional<std::string>> mounted_esp(const Places& places);

/// True when `directory` has EFI/systemd/systemd-boot*.efi, in upper or lower case.
Result<bool> has_systemd_boot(const std::string& directory);

/// What the boot loader that started this machine calls itself (EFI variable LoaderInfo, Boot Loader
/// Interface), e.g. "systemd-boot 252.38-1"; empty when it says nothing.
Result<std::string> loader_info(const Places& places);

}  // namespace rasupd::boot
