// The files of a boot partition of the Raspberry Pi.

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/failpoint.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "bootloader/entries.hpp"
#include "bootloader/kernel.hpp"
#include "bootloader/rpi.hpp"

namespace rasupd::boot::rpi {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxText = 256u << 10;
constexpr std::string_view kBegin = "# rasupd-begin ", kEnd = "# rasupd-end";
constexpr const char* kLinks = "ostree/boot-0";
/// Where an image keeps what the firmware itself needs; the first that is there.
constexpr const char* kFirmware[] = {"usr/lib/rasupd/boot-firmware", "usr/lib/raspi-firmware",
                                     "usr/lib/firmware/raspi"};

std::string deployment_path(const std::string& sysroot, const Entry& entry) {
  return path_join(sysroot, fmt::format("ostree/deploy/{}/deploy/{}", entry.stateroot, entry.deployment));
}

/// A config.txt without the lines of ours.
std::string without_block(std::string_view text) {
  std::vector<std::string> kept;
  bool inside = false;
  for (std::string& line : split(text, '\n')) {
    if (line.starts_with(kBegin)) inside = true;
    if (!inside) kept.push_back(std::move(line));
    if (line.starts_with(kEnd)) inside = false;
  }
  while (!kept.empty() && trim(kept.back()).empty()) kept.pop_back();
  return kept.empty() ? "" : join(kept, "\n") + "\n";
}

std::string firmware_directory(const std::string& deployment) {
  for (const char* place : kFirmware) {
    if (exists(path_join(deployment, place))) return path_join(deployment, place);
  }
  return "";
}

/// The regular files beneath `from`, to the same names beneath `to`. Links are not followed out of the image.
Result<void> add_tree(std::vector<esp::Copy>& out, const std::string& from, const std::string& to,
                      const std::string& suffix) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(from, error), end; !error && at != end; at.increment(error)) {
    const std::string name = fs::path(at->path()).lexically_relative(from);
    if (!fs::is_regular_file(at->symlink_status()) || !name.ends_with(suffix)) continue;
    if (name != "config.txt" && name != "cmdline.txt") out.push_back({at->path(), path_join(to, name)});
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return fail(Kind::Boot, fmt::format("{}: {}", from, error.message()));
  }
  return {};
}

/// Everything a side holds but cmdline.txt and config.txt.
Result<std::vector<esp::Copy>> all_files(const std::string& sysroot, const Side& side, const Entry& entry) {
  auto out = TRY(side_files(sysroot, side, entry));
  const std::string deployment = deployment_path(sysroot, entry);
  const std::string firmware = firmware_directory(deployment);
  if (!firmware.empty()) TRY(add_tree(out, firmware, side.directory, ""));
  const auto kernel = TRY(find_kernel_files(deployment));
  if (!kernel) return out;
  const std::string trees = path_join(kernel->kernel.substr(0, kernel->kernel.rfind('/')), "dtb");
  if (exists(path_join(trees, "broadcom")))
    TRY(add_tree(out, path_join(trees, "broadcom"), side.directory, ".dtb"));
  TRY(add_tree(out, path_join(trees, "overlays"), path_join(side.directory, "overlays"), ""));
  return out;
}

Result<std::string> config_text(const std::string& sysroot, const Side& active, const Entry& entry) {
  const std::string firmware = firmware_directory(deployment_path(sysroot, entry));
  std::optional<std::string> base;
  if (!firmware.empty()) base = TRY(read_file(path_join(firmware, "config.txt"), kMaxText, Kind::Boot));
  if (!base) base = TRY(read_file(path_join(active.directory, "config.txt"), kMaxText, Kind::Boot));
  std::string out = without_block(base.value_or(""));
  out += fmt::format("{}{}\n[all]\nkernel=vmlinuz\n", kBegin, entry.deployment);
  if (!entry.initrd.empty()) out += "initramfs initramfs.img followkernel\n";
  return out + std::string(kEnd) + "\n";
}

/// What is replaced goes first, so only the difference must fit.
Result<void> check_room(const Side& side, const std::vector<esp::Copy>& missing) {
  std::vector<std::uint64_t> sizes;
  std::uint64_t replaced = 0;
  for (const esp::Copy& copy : missing) {
    struct stat info {};
    if (::stat(copy.from.c_str(), &info) != 0) return fail_errno(errno, copy.from);
    sizes.push_back(static_cast<std::uint64_t>(info.st_size));
    if (::stat(copy.to.c_str(), &info) == 0) replaced += static_cast<std::uint64_t>(info.st_size);
  }
  esp::Space space = TRY(esp::space_for(side.directory, sizes));
  space.free += replaced;
  return esp::check_space(side.directory, space);
}

Result<void> make_link(const std::string& sysroot, const Entry& entry, unsigned partition) {
  const std::string link = path_join(sysroot, link_path(entry, partition)), temporary = link + ".new";
  const std::string target = fmt::format("../../../deploy/{}/deploy/{}", entry.stateroot, entry.deployment);
  const std::string directory = link.substr(0, link.rfind('/'));
  TRY(make_directories(directory));
  ::unlink(temporary.c_str());
  if (::symlink(target.c_str(), temporary.c_str()) != 0 || ::rename(temporary.c_str(), link.c_str()) != 0) {
    return fail_errno(errno, "making the link " + link);
  }
  return fsync_directory(directory);
}

}  // namespace

Result<std::vector<esp::Copy>> side_files(const std::string& sysroot, const Side& side, const Entry& entry) {
  const auto files = TRY(find_kernel_files(deployment_path(sysroot, entry)));
  std::vector<esp::Copy> out;
  const std::string kernel = files ? files->kernel : boot_file(sysroot, entry.kernel);
  out.push_back({kernel, path_join(side.directory, "vmlinuz")});
  if (entry.initrd.empty()) return out;
  const bool own = files && !files->initramfs.empty();
  out.push_back({own ? files->initramfs : boot_file(sysroot, entry.initrd),
                 path_join(side.directory, "initramfs.img")});
  return out;
}

std::string link_path(const Entry& entry, unsigned partition) {
  return fmt::format("/{}/{}/{}/{}", kLinks, entry.stateroot, entry.boot_checksum, partition);
}

std::string cmdline_of(const Entry& entry, unsigned partition) {
  std::vector<std::string> words = split_options(entry.options);
  for (std::string& word : words) {
    if (word.starts_with("ostree=")) word = "ostree=" + link_path(entry, partition);
    for (char& c : word) c = static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return join(words, " ");
}

Result<Side> read_side(const std::string& firmware, unsigned partition) {
  Side side;
  side.partition = partition;
  side.directory = firmware + (partition == kSideA ? "-a" : "-b");
  struct stat info {};
  if (::stat(side.directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return fail(Kind::Boot, side.directory + " is missing",
                fmt::format("mount boot partition {} there", partition));
  }
  const auto config = TRY(read_file(path_join(side.directory, "config.txt"), kMaxText, Kind::Boot));
  for (const std::string& line : split(config.value_or(""), '\n')) {
    if (line.starts_with(kBegin)) side.deployment = trim(std::string_view(line).substr(kBegin.size()));
  }
  const auto cmdline = TRY(read_file(path_join(side.directory, "cmdline.txt"), kMaxText, Kind::Boot));
  side.cmdline = trim(cmdline.value_or(""));
  return side;
}

Result<void> write_side(const std::string& sysroot, const Side& side, const Side& active,
                        const Entry& entry) {
  const auto files = TRY(all_files(sysroot, side, entry));
  const auto missing = TRY(esp::missing_copies(files));
  const std::string config = path_join(side.directory, "config.txt");
  const std::string cmdline = cmdline_of(entry, side.partition);
  if (missing.empty() && side.deployment == entry.deployment && side.cmdline == cmdline) {
    return make_link(sysroot, entry, side.partition);
  }
  const std::string text = TRY(config_text(sysroot, active, entry));
  TRY(check_room(side, missing));
  // Without its config.txt a side is nobody's: what a power cut leaves half-written is never taken for whole.
  if (::unlink(config.c_str()) != 0 && errno != ENOENT) return fail_errno(errno, "removing " + config);
  TRY(fsync_directory(side.directory));
  TRY(make_link(sysroot, entry, side.partition));
  TRY(failpoint("rpi-side-begun"));
  for (const esp::Copy& copy : missing) {
    TRY(make_directories(copy.to.substr(0, copy.to.rfind('/'))));
    if (::unlink(copy.to.c_str()) != 0 && errno != ENOENT) return fail_errno(errno, "removing " + copy.to);
    TRY(copy_file(copy.from, copy.to));
    TRY(failpoint("rpi-file-copied"));
  }
  TRY(write_file_durably(path_join(side.directory, "cmdline.txt"), cmdline + "\n", 0644));
  TRY(write_file_durably(config, text, 0644));
  return failpoint("rpi-side-written");
}

Result<void> check_side_space(const Side& side, std::uint64_t bytes) {
  esp::Space space = TRY(esp::space_for(side.directory, {bytes}));
  for (const char* name : {"vmlinuz", "initramfs.img"}) {
    struct stat info {};
    if (::stat(path_join(side.directory, name).c_str(), &info) == 0)
      space.free += static_cast<std::uint64_t>(info.st_size);
  }
  return esp::check_space(side.directory, space);
}

Result<void> remove_unused_links(const std::string& sysroot, const std::vector<Side>& sides) {
  const std::string links = path_join(sysroot, kLinks);
  for (const std::string& stateroot : TRY(list_directory(links))) {
    const std::string below = path_join(links, stateroot);
    for (const std::string& checksum : TRY(list_directory(below))) {
      const std::string directory = path_join(below, checksum);
      for (const std::string& name : TRY(list_directory(directory))) {
        const std::string path = fmt::format("ostree=/{}/{}/{}/{}", kLinks, stateroot, checksum, name);
        bool used = false;
        for (const Side& side : sides) {
          for (const std::string& word : split_options(side.cmdline)) used = used || word == path;
        }
        if (!used) ::unlink(path_join(directory, name).c_str());
      }
      ::rmdir(directory.c_str());  // only when it is empty
    }
  }
  return {};
}

}  // namespace rasupd::boot::rpi
