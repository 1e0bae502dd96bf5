#include "install/disk_layout.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/text.hpp"

namespace rasupd {
namespace {

// GPT partition types: UEFI specification 2.10 table 5.7 (ESP); GRUB manual, "BIOS installation"; the
// Discoverable Partitions Specification (root of an architecture, /var); "Linux filesystem data" for the
// rest.
constexpr const char* kTypeEsp = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B";
constexpr const char* kTypeBiosBoot = "21686148-6449-6E6F-744E-656564454649";
constexpr const char* kTypeLinux = "0FC63DAF-8483-4772-8E79-3D69D8477DE4";
constexpr const char* kTypeVar = "4D21B016-B534-45C2-A9FB-5C16E091FD2D";
constexpr std::array<std::pair<std::string_view, const char*>, 3> kTypeRoot = {{
    {"amd64", "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709"},
    {"arm64", "B921B045-1DF0-41C3-AF44-4C6F280D3FAE"},
    {"riscv64", "72EC70A6-CF74-40E6-BD49-4BDA08E8F224"},
}};

/// Header and entries of a GPT take 34 sectors in front and 33 at the end (UEFI specification, 5.3.1).
/// bios_boot lies in the gap that alignment leaves before the first MiB.
constexpr std::uint64_t kFirstUsable = 34 * kSector;
constexpr std::uint64_t kBackupTable = 33 * kSector;

/// Below these, mkfs(8) refuses or the result holds no system: FAT32 needs 65,525 clusters, XFS 300 MB since
/// xfsprogs 5.19, btrfs 109 MiB.
constexpr std::uint64_t kMinEsp = 40 * kMiB, kMinExt4 = 64 * kMiB, kMinXfs = 300 * kMiB,
                        kMinBtrfs = 128 * kMiB;

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kMiB - 1) / kMiB * kMiB;
}

std::uint64_t minimum(const std::string& file_system) {
  if (file_system == "vfat") return kMinEsp;
  if (file_system == "xfs") return kMinXfs;
  return file_system == "btrfs" ? kMinBtrfs : kMinExt4;
}

const char* root_type(std::string_view architecture) {
  for (const auto& [name, type] : kTypeRoot) {
    if (name == architecture) return type;
  }
  return kTypeLinux;
}

/// Size 0: all that is left.
std::vector<Partition> wanted(const LayoutRequest& request) {
  std::vector<Partition> list;
  const auto add = [&list](PartitionUse use, const char* name, const char* type, std::uint64_t size,
                           const std::string& file_system, const char* mount_point) {
    list.push_back({use, 0, name, type, 0, aligned(size), file_system, {}, mount_point});
  };
  add(PartitionUse::esp, "RASUPD-ESP", kTypeEsp, request.esp_size, "vfat", "/efi");
  if (request.boot_size) {
    add(PartitionUse::boot, "rasupd-boot", kTypeLinux, *request.boot_size, "ext4", "/boot");
  }
  const auto root = [&] {
    add(PartitionUse::root, "rasupd-root", root_type(request.architecture), request.root_size.value_or(0),
        request.file_system, "/");
  };
  if (request.root_size) root();
  if (request.var_size || request.var_rest) {
    add(PartitionUse::var, "rasupd-var", kTypeVar, request.var_size.value_or(0), request.file_system, "/var");
  }
  if (!request.root_size) root();
  return list;
}

Result<void> check_sizes(const LayoutRequest& request, const std::vector<Partition>& list) {
  if (request.var_rest && !request.root_size) {
    return fail(Kind::Usage, "--var-size rest needs --root-size: only one of both can take what is left");
  }
  for (const Partition& one : list) {
    const bool open = (one.use == PartitionUse::root && !request.root_size) ||
                      (one.use == PartitionUse::var && request.var_rest);
    if (open || one.size >= minimum(one.file_system)) continue;
    return fail(Kind::Usage,
                fmt::format("{}: {} MiB are too small for {}", one.name, one.size / kMiB, one.file_system),
                fmt::format("at least {} MiB", minimum(one.file_system) / kMiB));
  }
  return {};
}

}  // namespace

Result<std::vector<Partition>> plan_layout(const LayoutRequest& request, std::uint64_t disk_bytes) {
  std::vector<Partition> list = wanted(request);
  TRY(check_sizes(request, list));
  std::uint64_t needed = kMiB + aligned(kBackupTable);
  for (const Partition& one : list) needed += one.size == 0 ? minimum(one.file_system) : one.size;
  if (needed > disk_bytes) {
    return fail(
        Kind::NoSpace,
        fmt::format("the disk is too small: {} MiB needed, {} MiB there", needed / kMiB, disk_bytes / kMiB),
        "take a larger disk, or smaller partitions");
  }
  const std::uint64_t end = (disk_bytes - kBackupTable) / kMiB * kMiB;
  std::uint64_t at = kMiB;
  for (Partition& one : list) {
    one.start = at;
    if (one.size == 0) one.size = end - at;
    at += one.size;
  }
  if (request.architecture == "amd64") {
    list.insert(list.begin(), {PartitionUse::bios_boot,
                               0,
                               "rasupd-bios",
                               kTypeBiosBoot,
                               kFirstUsable,
                               kMiB - kFirstUsable,
                               {},
                               {},
                               {}});
  }
  for (std::size_t i = 0; i < list.size(); ++i) list[i].number = static_cast<unsigned>(i + 1);
  return list;
}

std::vector<std::string> sgdisk_arguments(const std::vector<Partition>& partitions) {
  std::vector<std::string> words{"--set-alignment=1"};  // else sgdisk moves bios_boot to the first MiB
  for (const Partition& one : partitions) {
    const std::uint64_t first = one.start / kSector, last = first + one.size / kSector - 1;
    words.push_back(fmt::format("--new={}:{}:{}", one.number, first, last));
    words.push_back(fmt::format("--typecode={}:{}", one.number, one.type));
    words.push_back(fmt::format("--change-name={}:{}", one.number, one.name));
  }
  return words;
}

const Partition* find_partition(const std::vector<Partition>& partitions, PartitionUse use) {
  for (const Partition& one : partitions) {
    if (one.use == use) return &one;
  }
  return nullptr;
}

Result<std::uint64_t> parse_size(std::string_view text, std::string_view option) {
  const auto wrong = [&] {
    return fail(Kind::Usage, fmt::format("{} \"{}\" is no size", option, printable(text)),
                "for instance 512M or 10G");
  };
  std::uint64_t number = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || number == 0) return wrong();
  std::string_view unit = text.substr(static_cast<std::size_t>(rest - text.data()));
  if (unit.empty()) return number;
  const auto power = std::string_view("KMGT").find(unit.front());
  unit.remove_prefix(1);
  if (power == std::string_view::npos || !(unit.empty() || unit == "iB")) return wrong();
  const unsigned shift = 10 * (static_cast<unsigned>(power) + 1);
  if (number > (std::uint64_t{1} << 50) >> shift) return wrong();  // more than a PiB is a slip
  return number << shift;
}

}  // namespace rasupd
