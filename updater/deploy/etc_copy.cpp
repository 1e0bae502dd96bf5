#include "deploy/etc_copy.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <array>
#include <cerrno>
#include <memory>

#include "base/text.hpp"

namespace rasupd {
namespace {

/// A new inode's label comes from the policy; taking it away is refused and means nothing.
constexpr std::string_view kLabelXattr = "security.selinux";

/// From `position` of the source to the same of the target, by pread and pwrite; 0 at the source's end.
Result<std::size_t> copy_block(int from, int to, off_t position, std::size_t length) {
  constexpr std::size_t kBlock = 65536;
  const auto block = std::make_unique<std::array<char, kBlock>>();
  const ssize_t got = ::pread(from, block->data(), std::min(length, kBlock), position);
  if (got < 0) return fail_errno(errno, "reading");
  std::size_t written = 0;
  while (written < static_cast<std::size_t>(got)) {
    const ssize_t put = ::pwrite(to, block->data() + written, static_cast<std::size_t>(got) - written,
                                 position + static_cast<off_t>(written));
    if (put < 0 && errno != EINTR) return fail_errno(errno, "writing");
    if (put > 0) written += static_cast<std::size_t>(put);
  }
  return written;
}

/// One stretch of data, in the kernel where the file systems can. False when the source ended early.
Result<bool> copy_range(int from, int to, off_t position, off_t end) {
  bool in_kernel = true;
  while (position < end) {
    const auto length = static_cast<std::size_t>(end - position);
    std::size_t done = 0;
    if (in_kernel) {
      off_t in = position, out = position;
      const ssize_t got = ::copy_file_range(from, &in, to, &out, length, 0);
      if (got < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO))
        return fail_errno(errno, "copying");
      if (got < 0) in_kernel = false;
      if (got < 0) continue;
      done = static_cast<std::size_t>(got);
    } else {
      done = TRY(copy_block(from, to, position, length));
    }
    if (done == 0) return false;
    position += static_cast<off_t>(done);
  }
  return true;
}

Result<void> copy_content(int from, int to) {
  if (::ioctl(to, FICLONE, from) == 0) return {};
  struct stat info {};
  if (::fstat(from, &info) != 0) return fail_errno(errno, "reading its state");
  off_t position = 0;
  while (position < info.st_size) {
    const off_t data = ::lseek(from, position, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // a hole up to the end
    const off_t begin = data < 0 ? position : data;
    const off_t hole = data < 0 ? info.st_size : ::lseek(from, begin, SEEK_HOLE);
    const off_t end = hole < 0 ? info.st_size : hole;
    if (!TRY(copy_range(from, to, begin, end))) break;
    position = end;
  }
  // A source cut short meanwhile must not leave a tail of zeros.
  if (::fstat(from, &info) != 0) return fail_errno(errno, "reading its state");
  if (::ftruncate(to, info.st_size) != 0) return fail_errno(errno, "setting its size");
  return {};
}

Result<bool> copy_file(int from, const EtcNode& node, int to, const std::string& name) {
  const Fd source(::openat(from, node.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!source && (errno == ENOENT || errno == ELOOP || errno == ENXIO)) return false;
  if (!source) return fail_errno(errno, "opening");
  struct stat info {};
  if (::fstat(source.get(), &info) != 0) return fail_errno(errno, "reading its state");
  if (!S_ISREG(info.st_mode)) return false;
  // 0600 until the attributes are set: the content may be a secret.
  const Fd target(::openat(to, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!target) return fail_errno(errno, "creating");
  TRY(copy_content(source.get(), target.get()));
  return true;
}

Result<void> set_xattrs(const std::string& inode, const EtcAttributes& wanted, const EtcAttributes& present) {
  for (const auto& [name, value] : present.xattrs) {
    if (wanted.xattrs.count(name) != 0 || name == kLabelXattr) continue;
    if (::removexattr(inode.c_str(), name.c_str()) != 0 && errno != ENODATA) {
      return fail_errno(errno, "removing extended attribute " + printable(name));
    }
  }
  for (const auto& [name, value] : wanted.xattrs) {
    const auto found = present.xattrs.find(name);
    if (found != present.xattrs.end() && found->second == value) continue;
    if (::setxattr(inode.c_str(), name.c_str(), value.data(), value.size(), 0) != 0) {
      return fail_errno(errno, "setting extended attribute " + printable(name));
    }
  }
  return {};
}

}  // namespace

Result<bool> copy_etc_leaf(int from, const EtcNode& node, int to, const std::string& name) {
  int made = 0;
  switch (node.kind) {
    case FileKind::file:
      if (!TRY(copy_file(from, node, to, name))) return false;
      break;
    case FileKind::symlink:
      made = ::symlinkat(node.link.c_str(), to, name.c_str());
      break;
    case FileKind::fifo:
    case FileKind::device:
      made = ::mknodat(to, name.c_str(), node.type | 0600, node.device);
      break;
    default:
      return fail(Kind::Bug, "copying a " + std::string(file_kind_name(node.kind)) + " as a file");
  }
  if (made != 0) return fail_errno(errno, "creating the " + std::string(file_kind_name(node.kind)));
  TRY(set_etc_attributes(to, name, node.attributes));
  TRY(set_etc_time(to, name, node.modified));
  return true;
}

Result<void> make_etc_directory(int to, const std::string& name) {
  if (::mkdirat(to, name.c_str(), 0700) != 0) return fail_errno(errno, "creating the directory");
  return {};
}

Result<void> set_etc_attributes(int directory, const std::string& name, const EtcAttributes& attributes) {
  const Fd fd(::openat(directory, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening the copy");
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail_errno(errno, "reading the copy's state");
  if ((info.st_uid != attributes.uid || info.st_gid != attributes.gid) &&
      ::fchownat(fd.get(), "", attributes.uid, attributes.gid, AT_EMPTY_PATH) != 0) {
    return fail_errno(errno, "setting the owner");
  }
  // By the magic link, because fchmod(2) and fsetxattr(2) refuse O_PATH; it names this very inode.
  const std::string inode = "/proc/self/fd/" + std::to_string(fd.get());
  const auto present = TRY(read_etc_node(directory, name));
  if (!present) return fail(Kind::Failed, "the copy vanished");
  TRY(set_xattrs(inode, attributes, present->attributes));
  if (!S_ISLNK(info.st_mode) && ::chmod(inode.c_str(), attributes.mode) != 0)
    return fail_errno(errno, "setting the mode");
  return {};
}

Result<void> set_etc_time(int directory, const std::string& name, const struct timespec& modified) {
  const struct timespec times[2] = {{0, UTIME_OMIT}, modified};
  if (::utimensat(directory, name.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
    return fail_errno(errno, "setting the time");
  return {};
}

Result<void> copy_etc_tree(int from, int to) {
  for (const auto& name : TRY(list_etc_names(from))) {
    const auto copy = [&]() -> Result<void> {
      const auto node = TRY(read_etc_node(from, name));
      if (!node) return fail(Kind::Failed, "vanished while being copied");
      if (!node->is_directory()) {
        if (!TRY(copy_etc_leaf(from, *node, to, name)))
          return fail(Kind::Failed, "changed while being copied");
        return {};
      }
      TRY(make_etc_directory(to, name));
      const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
      const Fd source(::openat(from, name.c_str(), how)), target(::openat(to, name.c_str(), how));
      if (!source || !target) return fail_errno(errno, "opening the directory");
      return copy_etc_tree(source.get(), target.get());
    };
    TRY(copy().within(printable(name)));
  }
  const auto self = TRY(read_etc_node(from, "."));
  if (!self) return fail(Kind::Failed, "the directory vanished while being copied");
  TRY(set_etc_attributes(to, ".", self->attributes));
  return set_etc_time(to, ".", self->modified);
}

Result<void> remove_etc_name(int directory, const std::string& name) {
  if (::unlinkat(directory, name.c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR && errno != EPERM) return fail_errno(errno, "removing " + printable(name));
  {
    const Fd inside(::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!inside) return fail_errno(errno, "removing " + printable(name));
    for (const auto& child : TRY(list_etc_names(inside.get()))) TRY(remove_etc_name(inside.get(), child));
  }
  if (::unlinkat(directory, name.c_str(), AT_REMOVEDIR) != 0)
    return fail_errno(errno, "removing directory " + printable(name));
  return {};
}

}  // namespace rasupd
