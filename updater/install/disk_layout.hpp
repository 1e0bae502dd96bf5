#pragma once
// How a disk is divided: sizes in, partitions out. Pure: no device is looked at. Errors: Usage (a size that
// is none, or too small for its file system), NoSpace (with the numbers).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rasupd {

inline constexpr std::uint64_t kSector = 512;  ///< other logical sector sizes are refused (block_device.hpp)
inline constexpr std::uint64_t kMiB = 1024 * 1024;

enum class PartitionUse { bios_boot, esp, boot, root, var };

struct Partition {
  PartitionUse use = PartitionUse::root;
  unsigned number = 0;
  std::string name;         ///< GPT name, and the file system's label
  std::string type;         ///< GPT type, a GUID
  std::uint64_t start = 0;  ///< bytes
  std::uint64_t size = 0;   ///< bytes
  std::string file_system;  ///< "vfat", "ext4", "xfs", "btrfs"; empty: none
  std::string uuid;         ///< of the file system; filled in by who makes it
  std::string mount_point;  ///< in the installed system; empty: not mounted
};

struct LayoutRequest {
  std::string architecture;          ///< Go's name; decides on bios_boot and on the type of root
  std::string file_system = "ext4";  ///< of root and /var: ext4, xfs or btrfs
  std::uint64_t esp_size = 256 * kMiB;
  std::optional<std::uint64_t>
      boot_size;  ///< a /boot of its own, always ext4: what every bootloader can read
  std::optional<std::uint64_t> root_size;  ///< else all that is left
  std::optional<std::uint64_t> var_size;   ///< a /var of its own
  bool var_rest = false;                   ///< a /var of its own that takes all that is left
};

/// The partitions of a disk of `disk_bytes` in the order they lie there; the one that takes what is left is
/// the last, so that it can grow with the disk. Sizes are rounded up to whole MiB.
Result<std::vector<Partition>> plan_layout(const LayoutRequest& request, std::uint64_t disk_bytes);

/// Arguments that make sgdisk(8) write exactly these partitions into an empty table.
std::vector<std::string> sgdisk_arguments(const std::vector<Partition>& partitions);

/// The partition of that use, null when there is none.
const Partition* find_partition(const std::vector<Partition>& partitions, PartitionUse use);

/// "512M", "10G", "1GiB": a whole number with a unit of powers of 1024 (K, M, G, T); without one, bytes.
Result<std::uint64_t> parse_size(std::string_view text, std::string_view option);

}  // namespace rasupd
