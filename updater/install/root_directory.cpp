#include "install/root_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/files.hpp"

namespace rasupd {
namespace {

bool is_directory(int dirfd, const char* name, dev_t& device) {
  struct stat info {};
  if (::fstatat(dirfd, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return false;
  device = info.st_dev;
  return S_ISDIR(info.st_mode);
}

Result<std::vector<std::string>> names_in(int dirfd) {
  std::vector<std::string> names;
  const int copy = ::openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, Deleter<closedir>> dir(copy < 0 ? nullptr : ::fdopendir(copy));
  if (!dir) return fail_errno(errno, "listing a directory");
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

/// Deployments carry chattr +i (libostree's guard against a careless rm -rf).
void clear_immutable(int fd) {
  int flags = 0;
  if (::ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0 || (flags & FS_IMMUTABLE_FL) == 0) return;
  flags &= ~FS_IMMUTABLE_FL;
  ::ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

Fd open_on_this_mount(int dirfd, const std::string& name) {
  struct open_how how {};
  how.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS;
  const long fd = ::syscall(SYS_openat2, dirfd, name.c_str(), &how, sizeof how);
  if (fd >= 0 || errno != ENOSYS) return Fd(static_cast<int>(fd));
  return Fd(::openat(dirfd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// EBUSY is a file that something is mounted on: it stays.
Result<void> remove_file(int dirfd, const std::string& name) {
  if (::unlinkat(dirfd, name.c_str(), 0) == 0 || errno == EBUSY) return {};
  if (errno == EPERM) {
    if (Fd file(::openat(dirfd, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)); file) {
      clear_immutable(file.get());
    }
    if (::unlinkat(dirfd, name.c_str(), 0) == 0) return {};
  }
  return fail_errno(errno, "removing " + name);
}

Result<void> remove_beneath(int dirfd, dev_t device, const std::vector<std::string>& keep) {
  clear_immutable(dirfd);
  for (const std::string& name : TRY(names_in(dirfd))) {
    if (std::find(keep.begin(), keep.end(), name) != keep.end()) continue;
    dev_t entry_device = device;
    if (!is_directory(dirfd, name.c_str(), entry_device)) {
      TRY(remove_file(dirfd, name));
      continue;
    }
    Fd child = open_on_this_mount(dirfd, name);
    // A mount point stays, and so does what is mounted there: also a bind mount of this very file system.
    if (!child && errno == EXDEV) continue;
    if (!child) return fail_errno(errno, "opening " + name);
    if (entry_device != device) continue;
    TRY(remove_beneath(child.get(), device, {}));
    if (::unlinkat(dirfd, name.c_str(), AT_REMOVEDIR) != 0 && errno != EBUSY && errno != ENOTEMPTY) {
      return fail_errno(errno, "removing " + name);
    }
  }
  return {};
}

/// Holds mount points, itself or further down, and nothing else. An empty directory is something.
Result<bool> only_leads_to_mounts(int dirfd, const std::string& name, dev_t device) {
  dev_t own = device;
  if (!is_directory(dirfd, name.c_str(), own)) return false;
  if (own != device) return true;
  const Fd directory(::openat(dirfd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) return fail_errno(errno, "opening " + name);
  const auto names = TRY(names_in(directory.get()));
  for (const std::string& below : names) {
    if (!TRY(only_leads_to_mounts(directory.get(), below, device))) return false;
  }
  return !names.empty();
}

/// Only the last component is missing.
bool can_be_made(const std::string& root) {
  const auto last = root.find_last_not_of('/');
  const auto slash = root.rfind('/', last);
  const std::string parent = slash == std::string::npos ? "." : slash == 0 ? "/" : root.substr(0, slash);
  return !exists(root) && exists(parent);
}

Result<Fd> open_root(const std::string& root) {
  Fd fd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) return fd;
  if (errno == ENOENT)
    return fail(Kind::Usage, root + " does not exist", "create it, or mount the file system there");
  if (errno == ENOTDIR) return fail(Kind::Usage, root + " is not a directory");
  return fail_errno(errno, "opening " + root);
}

}  // namespace

Result<bool> root_is_empty(const std::string& root) {
  if (can_be_made(root)) return true;
  Fd fd = TRY(open_root(root));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail_errno(errno, root);
  for (const std::string& name : TRY(names_in(fd.get()))) {
    if (name == "lost+found" || name == ".rasupd-install") continue;
    if (!TRY(only_leads_to_mounts(fd.get(), name, info.st_dev))) return false;
  }
  return true;
}

Result<Fd> claim_root(const std::string& root) {
  Fd fd = TRY(open_root(root));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(Kind::Busy, "another installation into " + root + " is running", "wait for it, or end it");
  }
  return fd;
}

Result<void> empty_root(const std::string& root, const std::string& keep) {
  Fd fd = TRY(open_root(root));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail_errno(errno, root);
  return remove_beneath(fd.get(), info.st_dev, {"lost+found", keep});
}

Result<void> remove_tree(const std::string& root, const std::string& name) {
  Fd fd = TRY(open_root(root));
  struct stat info {};
  if (::fstatat(fd.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return {};
  if (!S_ISDIR(info.st_mode)) return remove_file(fd.get(), name);
  const Fd inside = open_on_this_mount(fd.get(), name);
  if (!inside) return fail_errno(errno, "opening " + name);
  TRY(remove_beneath(inside.get(), info.st_dev, {}));
  if (::unlinkat(fd.get(), name.c_str(), AT_REMOVEDIR) != 0) return fail_errno(errno, "removing " + name);
  return {};
}

Result<void> clear_boot(const std::string& root) {
  const std::string boot = path_join(root, "boot");
  if (!exists(boot)) return {};
  for (const char* name : {"loader", "loader.0", "loader.1", "ostree"}) TRY(remove_tree(boot, name));
  return {};
}

}  // namespace rasupd
