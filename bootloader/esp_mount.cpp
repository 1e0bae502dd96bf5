#include "bootloader/esp_mount.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/files.hpp"
#include "base/text.hpp"

namespace rasupd::boot {
namespace {

constexpr std::size_t kMaxMountinfo = 4u << 20;
constexpr std::size_t kMaxVariable = 4096;
constexpr const char* kLoaderInfo = "LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
constexpr std::array kMountPoints{"/efi", "/boot/efi", "/boot"};

/// The name in `directory` that is `wanted` but for upper and lower case; empty when there is none.
Result<std::string> child(const std::string& directory, std::string_view wanted) {
  const auto same = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
  for (const std::string& name : TRY(list_directory(directory))) {
    if (std::equal(name.begin(), name.end(), wanted.begin(), wanted.end(), same))
      return path_join(directory, name);
  }
  return std::string();
}

/// proc_pid_mountinfo(5): … (5) mount point (6) options, optional fields, "-", type …
bool is_vfat_at(const std::string& line, std::string_view mount_point) {
  const auto fields = split(line, ' ');
  const auto dash = std::find(fields.begin(), fields.end(), "-");
  return fields.size() > 4 && fields[4] == mount_point && dash != fields.end() && dash + 1 != fields.end() &&
         dash[1] == "vfat";
}

}  // namespace

Result<std::optional<std::string>> mounted_esp(const Places& places) {
  // systemd mounts the partition when someone looks into it.
  for (const char* point : kMountPoints) (void)::access(path_join(point, "EFI").c_str(), F_OK);
  const auto text = TRY(read_file(places.mountinfo, kMaxMountinfo, Kind::Boot));
  const auto lines = split(text.value_or(""), '\n');
  for (const char* point : kMountPoints) {
    for (const std::string& line : lines) {
      if (is_vfat_at(line, point)) return std::optional<std::string>(point);
    }
  }
  return std::optional<std::string>{};
}

Result<bool> has_systemd_boot(const std::string& directory) {
  const std::string efi = TRY(child(directory, "EFI"));
  if (efi.empty()) return false;
  const std::string systemd = TRY(child(efi, "systemd"));
  if (systemd.empty()) return false;
  for (std::string name : TRY(list_directory(systemd))) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? c | 0x20 : c; });
    if (name.starts_with("systemd-boot") && name.ends_with(".efi")) return true;
  }
  return false;
}

Result<std::string> loader_info(const Places& places) {
  const auto value = TRY(read_file(path_join(places.efivars, kLoaderInfo), kMaxVariable, Kind::Boot));
  std::string out;
  // Four bytes of attributes, then UTF-16; the names in use are ASCII.
  for (std::size_t i = 4; value && i + 1 < value->size(); i += 2) {
    const char low = (*value)[i];
    if (low == 0 && (*value)[i + 1] == 0) break;
    out += (*value)[i + 1] == 0 ? low : '?';
  }
  return printable(out);
}

}  // namespace rasupd::boot
