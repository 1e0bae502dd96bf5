#include "bootloader/entry_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>

#include "base/files.hpp"
#include "base/text.hpp"
#include "bootloader/entries.hpp"
#include "bootloader/kernel.hpp"

namespace rasupd::boot {
namespace {

/// EXT4_IOC_CHECKPOINT (Documentation/filesystems/ext4/journal.rst, since Linux 5.14): what the journal holds is
/// written to its place, without stopping anybody. Not in the headers for user space.
constexpr unsigned long kExt4Checkpoint = _IOW('f', 43, std::uint32_t);

Result<void> compare(const std::string& sysroot, const Entry& entry, const std::string& written,
                     const std::string& original) {
  const std::string copy = boot_file(sysroot, written);
  if (written.empty() || !exists(copy)) {
    return differs(
        fmt::format("boot entry {}: {} is missing", entry.file, written.empty() ? "initrd" : copy));
  }
  if (!TRY(same_content(copy, original))) {
    return differs(fmt::format("boot entry {}: {} differs from {}", entry.file, copy, original));
  }
  return {};
}

}  // namespace

tl::unexpected<Error> differs(std::string message) {
  return fail(Kind::Boot, std::move(message), "look at /boot; do not reboot before it is mounted and whole");
}

std::vector<std::string> carry_foreign(const std::string& sysroot, const Menu& before) {
  std::vector<std::string> lost;
  const std::string directory = path_join(sysroot, "boot/loader/entries");
  for (const ForeignFile& file : before.foreign) {
    const std::string path = path_join(directory, file.name);
    if (exists(path)) continue;
    const auto written = write_file_durably(path, file.content, 0644);
    if (!written) {
      lost.push_back(fmt::format("the boot entry {} of another system was lost: {}", printable(file.name),
                                 written.error().message));
    }
  }
  return lost;
}

Result<void> verify_entries(const std::string& sysroot, const std::string& directory) {
  const Menu menu = TRY(read_menu(sysroot));
  if (!menu.problems.empty()) return differs(menu.problems.front());
  if (menu.entries.empty()) return differs("no boot entries read back");
  const Entry& first = menu.entries.front();
  const std::string leads_to = TRY(resolve(sysroot, first));
  if (leads_to != directory) {
    return differs(
        fmt::format("boot entry {} read back leads to {}, not to {}", first.file, leads_to, directory));
  }
  const auto files = TRY(find_kernel_files(path_join(sysroot, directory)));
  if (!files) return {};
  TRY(compare(sysroot, first, first.kernel, files->kernel));
  if (files->initramfs.empty()) return {};
  return compare(sysroot, first, first.initrd, files->initramfs);
}

Result<std::vector<Entry>> resolved_entries(const std::string& sysroot) {
  Menu menu = TRY(read_menu(sysroot));
  for (Entry& entry : menu.entries) {
    const auto directory = resolve(sysroot, entry);
    if (directory) entry.deployment = directory->substr(directory->rfind('/') + 1);
  }
  return std::move(menu.entries);
}

std::string loader_file(const std::string& sysroot, unsigned boot_version, const std::string& name) {
  return path_join(sysroot, fmt::format("boot/loader.{}/{}", boot_version, name));
}

Result<unsigned> current_boot_version(const std::string& sysroot) {
  const std::string link = path_join(sysroot, "boot/loader");
  char target[PATH_MAX];
  const ssize_t length = ::readlink(link.c_str(), target, sizeof target);
  const std::string_view name(target, length > 0 ? static_cast<std::size_t>(length) : 0);
  if (name == "loader.0") return 0u;
  if (name == "loader.1") return 1u;
  return fail(Kind::Boot, link + " does not point to loader.0 or loader.1", "is /boot mounted?");
}

void take_titles(std::vector<Entry>& entries, const Next& next) {
  for (Entry& entry : entries) {
    for (const Entry& known : next.entries) {
      if (!known.title.empty() && known.deployment == entry.deployment) entry.title = known.title;
    }
  }
}

std::string below_boot(const std::string& path) {
  const bool prefixed = path.starts_with("/boot/") && !path.starts_with("/boot/boot/");
  return prefixed ? path.substr(5) : path;
}

std::string one_line(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return out;
}

bool is_kernel_directory(std::string_view name) {
  constexpr std::size_t kChecksum = 64;
  if (name.size() < kChecksum + 2 || name[name.size() - kChecksum - 1] != '-') return false;
  return name.substr(name.size() - kChecksum).find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

Result<void> settle_for_boot(const std::string& sysroot, const std::string& path) {
  return sysroot == "/" ? settle_file_system(path) : Result<void>{};
}

Result<void> settle_file_system(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening " + path);
  if (::syncfs(fd.get()) != 0) return fail_errno(errno, "syncing the file system of " + path);
  std::uint32_t flags = 0;
  if (::ioctl(fd.get(), kExt4Checkpoint, &flags) == 0) return {};
  // A frozen root file system would stop this very process at its next write: thaw at once, whatever happened.
  if (::ioctl(fd.get(), FIFREEZE, 0) == 0) ::ioctl(fd.get(), FITHAW, 0);
  return {};
}

}  // namespace rasupd::boot
