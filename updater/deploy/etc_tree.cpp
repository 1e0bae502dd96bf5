#include "deploy/etc_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/text.hpp"

namespace rasupd {
namespace {

/// A hash over this inode's own metadata: wrong on every copy, and the kernel makes it anew.
constexpr std::string_view kInodeBoundXattr = "security.evm";

FileKind kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return FileKind::file;
    case S_IFDIR:
      return FileKind::directory;
    case S_IFLNK:
      return FileKind::symlink;
    case S_IFIFO:
      return FileKind::fifo;
    case S_IFSOCK:
      return FileKind::socket;
    default:
      return FileKind::device;
  }
}

bool is_absence(int err) {
  return err == ENOENT || err == ENOTDIR || err == ELOOP || err == ENXIO;
}

tl::unexpected<Error> fail_at(int err, std::string_view doing, std::string_view name) {
  return fail_errno(err, std::string(doing) + " " + printable(name));
}

/// The value of one xattr; nullopt when it went away. A value may grow between the two calls, hence the loop.
Result<std::optional<std::string>> read_xattr(const std::string& path, const char* name) {
  for (;;) {
    const ssize_t size = ::getxattr(path.c_str(), name, nullptr, 0);
    if (size >= 0) {
      std::string value(static_cast<std::size_t>(size), '\0');
      const ssize_t got = ::getxattr(path.c_str(), name, value.data(), value.size());
      if (got >= 0) {
        value.resize(static_cast<std::size_t>(got));
        return std::optional(std::move(value));
      }
    }
    if (errno == ENODATA || errno == ENOTSUP) return std::optional<std::string>{};
    if (errno != ERANGE) return fail_at(errno, "reading extended attribute", name);
  }
}

Result<std::map<std::string, std::string>> read_xattrs(const std::string& path) {
  std::string names;
  for (;;) {
    const ssize_t size = ::listxattr(path.c_str(), nullptr, 0);
    if (size < 0 && errno == ENOTSUP) return std::map<std::string, std::string>{};
    if (size < 0) return fail_errno(errno, "listing extended attributes");
    names.resize(static_cast<std::size_t>(size));
    const ssize_t got = ::listxattr(path.c_str(), names.data(), names.size());
    if (got >= 0) {
      names.resize(static_cast<std::size_t>(got));
      break;
    }
    if (errno != ERANGE) return fail_errno(errno, "listing extended attributes");
  }
  std::map<std::string, std::string> xattrs;
  for (std::size_t at = 0; at < names.size(); at += std::strlen(&names[at]) + 1) {
    const char* name = &names[at];
    if (name == kInodeBoundXattr) continue;
    auto value = TRY(read_xattr(path, name));
    if (value) xattrs.emplace(name, std::move(*value));
  }
  return xattrs;
}

Result<std::string> read_link(int fd, off_t size) {
  std::string target(static_cast<std::size_t>(size) + 1, '\0');
  const ssize_t got = ::readlinkat(fd, "", target.data(), target.size());
  if (got < 0) return fail_errno(errno, "reading a symlink");
  target.resize(static_cast<std::size_t>(got));
  return target;
}

Result<EtcNode> read_open_node(int fd, const std::string& name) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return fail_errno(errno, "reading its state");
  EtcNode node;
  node.name = name;
  node.kind = kind_of(info.st_mode);
  node.type = info.st_mode & S_IFMT;
  node.attributes.mode = info.st_mode & 07777;
  node.attributes.uid = info.st_uid;
  node.attributes.gid = info.st_gid;
  node.filesystem = info.st_dev;
  node.inode = info.st_ino;
  node.size = info.st_size;
  node.device = node.kind == FileKind::device ? info.st_rdev : 0;
  node.modified = info.st_mtim;
  if (node.kind == FileKind::symlink) node.link = TRY(read_link(fd, info.st_size));
  // The f*xattr calls refuse O_PATH; the magic link names the inode itself, also that of a symlink.
  node.attributes.xattrs = TRY(read_xattrs("/proc/self/fd/" + std::to_string(fd)));
  return node;
}

Result<void> read_children(int directory, EtcNode& node, const std::string& path) {
  for (const auto& name : TRY(list_etc_names(directory).within(printable(path)))) {
    const std::string below = etc_path(path, name);
    auto child = TRY(read_etc_node(directory, name).within(printable(below)));
    if (!child) continue;
    if (child->is_directory()) {
      const Fd fd(::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!fd && is_absence(errno)) continue;
      if (!fd) return fail_at(errno, "opening directory", below);
      TRY(read_children(fd.get(), *child, below));
    }
    node.children.push_back(std::move(*child));
  }
  return {};
}

Result<std::size_t> read_fully(int fd, std::span<char> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::read(fd, into.data() + done, into.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(errno, "reading");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<bool> same_bytes(int a, int b) {
  constexpr std::size_t kBlock = 65536;
  const auto left = std::make_unique<std::array<char, kBlock>>();
  const auto right = std::make_unique<std::array<char, kBlock>>();
  for (;;) {
    const std::size_t n = TRY(read_fully(a, *left));
    if (n != TRY(read_fully(b, *right)) || std::memcmp(left->data(), right->data(), n) != 0) return false;
    if (n < kBlock) return true;
  }
}

}  // namespace

const EtcNode* EtcNode::child(const std::string& wanted) const {
  const auto at =
      std::lower_bound(children.begin(), children.end(), wanted,
                       [](const EtcNode& node, const std::string& key) { return node.name < key; });
  return at != children.end() && at->name == wanted ? &*at : nullptr;
}

std::string etc_path(const std::string& directory, const std::string& name) {
  return directory == "." ? name : directory + "/" + name;
}

std::string etc_base_name(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

Result<std::vector<std::string>> list_etc_names(int directory) {
  Fd fd(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening the directory");
  const std::unique_ptr<DIR, Deleter<closedir>> dir(::fdopendir(fd.get()));
  if (!dir) return fail_errno(errno, "listing the directory");
  (void)fd.release();  // closedir owns it now
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return fail_errno(errno, "listing the directory");
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::optional<EtcNode>> read_etc_node(int directory, const std::string& name) {
  const Fd fd(::openat(directory, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!fd && is_absence(errno)) return std::optional<EtcNode>{};
  if (!fd) return fail_errno(errno, "opening");
  return std::optional(TRY(read_open_node(fd.get(), name)));
}

Result<EtcNode> read_etc_tree(int root) {
  auto node = TRY(read_etc_node(root, "."));
  if (!node || !node->is_directory()) return fail(Kind::Failed, "not a directory");
  TRY(read_children(root, *node, "."));
  return std::move(*node);
}

Result<std::optional<Fd>> open_etc_parent(int root, const std::string& path) {
  Fd at(::openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!at) return fail_errno(errno, "opening /etc");
  std::size_t start = 0;
  for (auto end = path.find('/'); end != std::string::npos; end = path.find('/', start)) {
    const std::string name = path.substr(start, end - start);
    if (name == "..") return fail(Kind::Bug, "a path with \"..\": " + printable(path));
    Fd next(::openat(at.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next && is_absence(errno)) return std::optional<Fd>{};
    if (!next) return fail_at(errno, "opening", path);
    at = std::move(next);
    start = end + 1;
  }
  return std::optional(std::move(at));
}

Result<std::optional<Fd>> open_etc_path(int root, const std::string& path, int flags) {
  const auto parent = TRY(open_etc_parent(root, path));
  if (!parent) return std::optional<Fd>{};
  Fd fd(::openat(parent->get(), etc_base_name(path).c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
  if (!fd && is_absence(errno)) return std::optional<Fd>{};
  if (!fd) return fail_at(errno, "opening", path);
  return std::optional(std::move(fd));
}

Result<Sameness> compare_etc_nodes(int root_a, const EtcNode& a, int root_b, const EtcNode& b,
                                   const std::string& path) {
  const auto answer = [](bool same) { return same ? Sameness::same : Sameness::different; };
  if (a.type != b.type) return Sameness::different;
  if (a.kind == FileKind::symlink) return answer(a.link == b.link);
  if (a.kind == FileKind::device) return answer(a.device == b.device);
  if (a.kind != FileKind::file) return Sameness::same;
  if (a.filesystem == b.filesystem && a.inode == b.inode) return Sameness::same;
  if (a.size != b.size) return Sameness::different;
  // O_NONBLOCK: a FIFO that took the file's place meanwhile must not hang the shutdown.
  const auto file_a = TRY(open_etc_path(root_a, path, O_RDONLY | O_NONBLOCK));
  const auto file_b = TRY(open_etc_path(root_b, path, O_RDONLY | O_NONBLOCK));
  if (!file_a) return Sameness::gone;
  if (!file_b) return Sameness::different;
  return answer(TRY(same_bytes(file_a->get(), file_b->get()).within(printable(path))));
}

}  // namespace rasupd
