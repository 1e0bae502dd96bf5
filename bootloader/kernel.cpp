#include "bootloader/kernel.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/files.hpp"

namespace rasupd::boot {
namespace {

// Big enough that a kernel is a few hundred reads, small enough for a board with little memory.
constexpr std::size_t kBlock = 256u << 10;

Result<Fd> open_regular(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return fail_errno(errno, "opening " + path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return fail(Kind::Boot, path + ": not a regular file");
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  return fd;
}

Result<std::size_t> read_block(int fd, std::vector<char>& buffer, const std::string& path) {
  std::size_t have = 0;
  while (have < buffer.size()) {
    const ssize_t n = ::read(fd, buffer.data() + have, buffer.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(errno, "reading " + path);
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  return have;
}

Result<void> copy_bytes(int from, int to, const std::string& path) {
  std::vector<char> buffer(kBlock);
  for (;;) {
    const std::size_t have = TRY(read_block(from, buffer, path));
    if (have == 0) return {};
    for (std::size_t at = 0; at < have;) {
      const ssize_t n = ::write(to, buffer.data() + at, have - at);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail_errno(errno, "writing " + path);
      at += static_cast<std::size_t>(n);
    }
  }
}

/// A synced copy of `from` at `temporary`.
Result<void> write_copy(const std::string& from, const std::string& temporary) {
  const Fd source = TRY(open_regular(from));
  struct stat info {};
  ::fstat(source.get(), &info);
  const Fd target(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, info.st_mode & 07777));
  if (!target) return fail_errno(errno, "creating " + temporary);
  TRY(copy_bytes(source.get(), target.get(), temporary));
  if (::fchmod(target.get(), info.st_mode & 07777) != 0 || ::fsync(target.get()) != 0) {
    return fail_errno(errno, "syncing " + temporary);
  }
  return {};
}

/// A hard link of `from` at `temporary`, or a copy where there can be none.
Result<void> link_or_copy(const std::string& from, const std::string& temporary) {
  if (::link(from.c_str(), temporary.c_str()) == 0) return {};
  if (errno != EXDEV && errno != EMLINK && errno != EPERM && errno != ENOTSUP) {
    return fail_errno(errno, "linking " + temporary);
  }
  return write_copy(from, temporary);
}

using Maker = Result<void> (*)(const std::string& from, const std::string& temporary);

/// What `make` makes, read back and renamed to `to`; nothing when `to` is equal already.
Result<void> install_file(const std::string& from, const std::string& to, Maker make) {
  if (exists(to) && TRY(same_content(from, to))) return {};
  const std::string temporary = to + std::string(kUnfinished);
  const auto finish = [&]() -> Result<void> {
    ::unlink(temporary.c_str());
    TRY(make(from, temporary));
    if (!TRY(same_content(from, temporary))) {
      return fail(Kind::Boot, fmt::format("{} reads back different from {}", temporary, from),
                  "the medium of /boot may be failing; nothing was switched");
    }
    if (::rename(temporary.c_str(), to.c_str()) != 0) return fail_errno(errno, "renaming to " + to);
    ::unlink(temporary.c_str());  // rename(2) of two links of one inode does nothing and leaves both
    return {};
  };
  auto done = finish();
  if (!done) ::unlink(temporary.c_str());
  return done;
}

}  // namespace

Result<std::optional<KernelFiles>> find_kernel_files(const std::string& deployment) {
  const std::string modules = path_join(deployment, "usr/lib/modules");
  for (const std::string& version : TRY(list_directory(modules))) {
    KernelFiles files;
    files.version = version;
    files.kernel = path_join(path_join(modules, version), "vmlinuz");
    files.initramfs = path_join(path_join(modules, version), "initramfs.img");
    if (!exists(files.kernel)) continue;
    if (!exists(files.initramfs)) files.initramfs.clear();
    return std::optional(std::move(files));
  }
  return std::optional<KernelFiles>{};
}

std::string kernel_directory(const std::string& sysroot, const std::string& stateroot,
                             const std::string& boot_checksum) {
  return path_join(sysroot, fmt::format("boot/ostree/{}-{}", stateroot, boot_checksum));
}

Result<void> install_kernel(const std::string& sysroot, const std::string& directory,
                            const std::string& stateroot, const std::string& boot_checksum) {
  const auto files = TRY(find_kernel_files(path_join(sysroot, directory)));
  if (!files) return {};
  const std::string target = kernel_directory(sysroot, stateroot, boot_checksum);
  TRY(make_directories(target));
  TRY(install_file(files->kernel, path_join(target, "vmlinuz-" + files->version), link_or_copy));
  if (!files->initramfs.empty()) {
    const std::string initramfs = path_join(target, fmt::format("initramfs-{}.img", files->version));
    TRY(install_file(files->initramfs, initramfs, link_or_copy));
  }
  TRY(fsync_directory(target));
  return fsync_directory(path_join(sysroot, "boot/ostree"));
}

Result<void> copy_file(const std::string& from, const std::string& to) {
  return install_file(from, to, write_copy);
}

Result<bool> same_content(const std::string& a, const std::string& b) {
  const Fd left = TRY(open_regular(a));
  const Fd right = TRY(open_regular(b));
  struct stat one {
  }, two{};
  if (::fstat(left.get(), &one) != 0 || ::fstat(right.get(), &two) != 0)
    return fail_errno(errno, "stat of " + a);
  if (one.st_size != two.st_size) return false;
  if (one.st_dev == two.st_dev && one.st_ino == two.st_ino)
    return true;  // a hard link has no bytes of its own
  std::vector<char> mine(kBlock), theirs(kBlock);
  for (;;) {
    const std::size_t n = TRY(read_block(left.get(), mine, a));
    const std::size_t m = TRY(read_block(right.get(), theirs, b));
    if (n != m || std::memcmp(mine.data(), theirs.data(), n) != 0) return false;
    if (n == 0) return true;
  }
}

}  // namespace rasupd::boot
