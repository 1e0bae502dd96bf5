#include "install/root_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

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

Result<void> remove_beneath(int dirfd, dev_t device, bool top) {
  clear_immutable(dirfd);
  for (const std::string& name : TRY(names_in(dirfd))) {
    if (top && name == "lost+found") continue;
    dev_t entry_device = device;
    if (!is_directory(dirfd, name.c_str(), entry_device)) {
      if (::unlinkat(dirfd, name.c_str(), 0) != 0) return fail_errno(errno, "removing " + name);
      continue;
    }
    Fd child(::openat(dirfd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!child) return fail_errno(errno, "opening " + name);
    if (entry_device != device) continue;  // a mount point stays, and so does what is mounted there
    TRY(remove_beneath(child.get(), device, false));
    if (::unlinkat(dirfd, name.c_str(), AT_REMOVEDIR) != 0 && errno != EBUSY && errno != ENOTEMPTY) {
      return fail_errno(errno, "removing " + name);
    }
  }
  return {};
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
    if (name == "lost+found") continue;
    dev_t device = info.st_dev;
    if (!is_directory(fd.get(), name.c_str(), device)) return false;
    if (device == info.st_dev) return false;
  }
  return true;
}

Result<void> empty_root(const std::string& root) {
  Fd fd = TRY(open_root(root));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail_errno(errno, root);
  return remove_beneath(fd.get(), info.st_dev, true);
}

}  // namespace rasupd
