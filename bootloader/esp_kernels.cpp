// Kernels on the ESP: which, whether they fit, and which go.

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>

#include "base/files.hpp"
#include "base/text.hpp"
#include "bootloader/entries.hpp"
#include "bootloader/entry_files.hpp"
#include "bootloader/esp.hpp"
#include "bootloader/kernel.hpp"

namespace rasupd::boot::esp {
namespace {

/// Entries, their directory and the directories of kernels: a few clusters each.
constexpr std::uint64_t kMargin = 256u << 10;

/// Does `text` name a file in the directory `name`, in upper or lower case?
bool names(const std::string& text, const std::string& name) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), name.begin(), name.end(), same) != text.end();
}

Result<void> remove_tree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return fail(Kind::Failed, fmt::format("removing {}: {}", path, error.message()));
  return {};
}

/// Half-written files: kernels, and entries of ours (ostree-….conf.XXXXXX).
bool is_unfinished(std::string_view name) {
  constexpr std::size_t kRandom = 7;  // a dot and six letters, mkstemp(3)
  if (name.ends_with(kUnfinished)) return true;
  return name.starts_with("ostree-") && name.size() > kRandom &&
         name.substr(0, name.size() - kRandom).ends_with(".conf") && name[name.size() - kRandom] == '.';
}

Result<void> remove_unfinished(const std::string& directory) {
  for (const std::string& name : TRY(list_directory(directory))) {
    if (!is_unfinished(name)) continue;
    if (::unlink(path_join(directory, name).c_str()) != 0 && errno != ENOENT) {
      return fail_errno(errno, "removing " + path_join(directory, name));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<Copy>> copies(const std::string& sysroot, const std::string& esp,
                                 const std::vector<Entry>& entries) {
  std::map<std::string, std::string> wanted;  // to, from: two deployments may share a kernel
  for (const Entry& entry : entries) {
    std::optional<KernelFiles> files;
    if (!entry.deployment.empty()) {
      const std::string directory =
          fmt::format("ostree/deploy/{}/deploy/{}", entry.stateroot, entry.deployment);
      files = TRY(find_kernel_files(path_join(sysroot, directory)));
    }
    const std::string kernel = files ? files->kernel : "", initramfs = files ? files->initramfs : "";
    if (!entry.kernel.empty()) {
      wanted.emplace(path_join(esp, below_boot(entry.kernel)),
                     kernel.empty() ? boot_file(sysroot, entry.kernel) : kernel);
    }
    if (!entry.initrd.empty()) {
      wanted.emplace(path_join(esp, below_boot(entry.initrd)),
                     initramfs.empty() ? boot_file(sysroot, entry.initrd) : initramfs);
    }
  }
  std::vector<Copy> out;
  for (auto& [to, from] : wanted) out.push_back({from, to});
  return out;
}

Result<std::vector<Copy>> missing_copies(const std::vector<Copy>& all) {
  std::vector<Copy> out;
  for (const Copy& copy : all) {
    if (!exists(copy.to) || !TRY(same_content(copy.from, copy.to))) out.push_back(copy);
  }
  return out;
}

Result<Space> space_for(const std::string& esp, const std::vector<std::uint64_t>& sizes) {
  struct statvfs info {};
  if (::statvfs(esp.c_str(), &info) != 0) {
    const int err = errno;
    return fail(Kind::Boot, fmt::format("{}: {}", esp, std::generic_category().message(err)),
                "mount the EFI system partition");
  }
  Space space;
  const std::uint64_t cluster = std::max<std::uint64_t>(info.f_frsize, 512);
  for (const std::uint64_t size : sizes) space.needed += (size + cluster - 1) / cluster * cluster;
  if (space.needed > 0) space.needed += kMargin;
  space.free = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
  return space;
}

Result<void> check_space(const std::string& esp, const Space& space) {
  if (space.free >= space.needed) return {};
  return fail(Kind::NoSpace,
              fmt::format("{}: {} needed for kernel and initramfs, {} free", esp,
                          human_size(space.needed), human_size(space.free)),
              "release a pinned deployment, or remove what other systems no longer need there");
}

Result<void> remove_unused(const std::string& esp, const std::vector<Entry>& keep) {
  const EspMenu menu = TRY(read_esp(esp));
  std::string named = menu.others;
  for (const Entry& entry : keep) named += below_boot(entry.kernel) + "\n" + below_boot(entry.initrd) + "\n";
  for (const EspEntry& ours : menu.ours) named += ours.entry.kernel + "\n" + ours.entry.initrd + "\n";
  const std::string kernels = path_join(esp, "ostree");
  for (const std::string& name : TRY(list_directory(kernels))) {
    if (!is_kernel_directory(name)) continue;
    const std::string path = path_join(kernels, name);
    if (names(named, "/ostree/" + name + "/")) {
      TRY(remove_unfinished(path));
    } else {
      TRY(remove_tree(path));
    }
  }
  return remove_unfinished(path_join(esp, "loader/entries"));
}

}  // namespace rasupd::boot::esp
