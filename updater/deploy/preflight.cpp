#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.hpp"
#include "base/text.hpp"
#include "bootloader/kernel.hpp"
#include "deploy/locked_host_body.hpp"

namespace rasupd {
namespace {

// Entries, links and directories of the next loader.N; libostree allows itself the same.
constexpr std::uint64_t kMargin = 1u << 20;

/// Do /boot and the repository share a file system, so that kernels are hard links?
bool shares_file_system(const LockedHost::Body& body) {
  struct stat boot {
  }, repo{};
  return ::stat(body.path("boot").c_str(), &boot) == 0 &&
         ::stat(body.path("ostree/repo").c_str(), &repo) == 0 && boot.st_dev == repo.st_dev;
}

/// Is a kernel directory with this checksum complete in /boot already? Another stateroot's does not count:
/// libostree names the directory after both.
Result<bool> has_kernel(LockedHost::Body& body, const std::string& commit) {
  if (commit.empty()) return false;
  const auto checksum = TRY(body.sysroot.kernel_checksum(commit));
  if (!checksum) return false;
  for (const Deployment& deployment : body.state.deployments) {
    if (deployment.staged || deployment.boot_checksum != *checksum) continue;
    if (exists(boot::kernel_directory(body.world.sysroot, deployment.stateroot, *checksum))) return true;
  }
  return false;
}

}  // namespace

Result<void> check_boot_space(const LockedHost& host, std::uint64_t bytes, const std::string& commit) {
  LockedHost::Body& body = host.body();
  TRY(refuse_without_boot(body.state));
  const std::string boot = body.path("boot");
  struct statvfs info {};
  if (::statvfs(boot.c_str(), &info) != 0) {
    const int err = errno;
    return fail(Kind::Boot, fmt::format("{}: {}", boot, std::generic_category().message(err)), "mount /boot");
  }
  if ((info.f_flag & ST_RDONLY) || ::access(boot.c_str(), W_OK) != 0) {
    return fail(Kind::Boot, boot + " is not writable", "remount it writable");
  }
  const bool fresh = !TRY(has_kernel(body, commit));
  if (fresh) TRY(body.bootloader->check_space(bytes));
  std::uint64_t needed = kMargin;
  if (fresh && !shares_file_system(body)) needed += bytes;
  const std::uint64_t free = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
  if (free >= needed) return {};
  return fail(Kind::NoSpace,
              fmt::format("{}: {} needed for kernel and initramfs, {} free", boot, human_size(needed),
                          human_size(free)),
              "release a pinned deployment or remove old kernels from /boot");
}

}  // namespace rasupd
