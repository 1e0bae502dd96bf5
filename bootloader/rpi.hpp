#pragma once
// Raspberry Pi (raspberrypi.com, "autoboot.txt" and "tryboot"): a control partition whose autoboot.txt says which of
// two boot partitions starts, and which one once when a reboot asks for it. The firmware counts nothing and keeps no
// choice by itself: only what is written to [all] stays. Partition 2 is mounted beside the control partition with "-a",
// partition 3 with "-b". A side holds kernel, initramfs, cmdline.txt and config.txt of one deployment, and the firmware
// files of its image. Errors: Boot, NoSpace.

#include <cstdint>
#include <string>
#include <string_view>

#include "bootloader/bootloader.hpp"
#include "bootloader/esp.hpp"

namespace rasupd::boot::rpi {

inline constexpr std::size_t kMaxAutoboot = 512;  ///< the firmware reads no more
inline constexpr unsigned kSideA = 2, kSideB = 3;

struct Autoboot {
  unsigned all = kSideA, tryboot = kSideB;  ///< boot_partition of the two sections
  std::string trial;                        ///< the deployment on trial; empty when none is
};
Result<Autoboot> parse_autoboot(std::string_view text);
std::string autoboot_text(const Autoboot& autoboot);

/// Writes autoboot.txt into `firmware` (absolute) when it is missing: side A starts. Durable.
Result<void> write_static_files(const std::string& firmware);

/// One boot partition.
struct Side {
  unsigned partition = 0;
  std::string directory;   ///< absolute
  std::string deployment;  ///< whose files it holds, whole; empty when nobody's
  std::string cmdline;     ///< the line in cmdline.txt
};
Result<Side> read_side(const std::string& firmware, unsigned partition);

/// libostree renames boot.N at every switch, and a side that boots must never be written: a link of the side's own,
/// which no switch touches. ostree-system-generator takes the path apart by `^/ostree/boot.([01])/…/([0-9]+)$`.
std::string link_path(const Entry& entry, unsigned partition);
/// The kernel command line of `entry` on a side: its options with that link as `ostree=`.
std::string cmdline_of(const Entry& entry, unsigned partition);

/// Makes `side` hold `entry`: link, kernel, initramfs, firmware files, cmdline.txt, and config.txt as the last. An
/// equal side is left as it is. `active`: the other side, whose config.txt is taken when the image has none.
Result<void> write_side(const std::string& sysroot, const Side& side, const Side& active, const Entry& entry);
/// Do a kernel and an initramfs of `bytes` together fit on `side` in the place of what is there? Error NoSpace.
Result<void> check_side_space(const Side& side, std::uint64_t bytes);
/// Removes the links that no side's cmdline.txt names.
Result<void> remove_unused_links(const std::string& sysroot, const std::vector<Side>& sides);
/// Kernel and initramfs of `entry` on `side`, to be compared.
Result<std::vector<esp::Copy>> side_files(const std::string& sysroot, const Side& side, const Entry& entry);

}  // namespace rasupd::boot::rpi
