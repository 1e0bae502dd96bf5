#pragma once
// A small tree as a value, written to and read from a directory by other means than the code under test.

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace rasupd::test {

struct Entry {
  char kind = 'f';  ///< f, d, l, p (FIFO), s (socket), c (character device)
  std::string data;
  unsigned mode = 0644, uid = 0, gid = 0;
  std::map<std::string, std::string> xattrs;
  bool operator==(const Entry&) const = default;

  Entry with_owner(unsigned user, unsigned group) const {
    Entry copy = *this;
    copy.uid = user;
    copy.gid = group;
    return copy;
  }
  Entry with_xattr(const std::string& name, const std::string& value) const {
    Entry copy = *this;
    copy.xattrs[name] = value;
    return copy;
  }
};
inline void PrintTo(const Entry& entry, std::ostream* out) {
  *out << entry.kind << " \"" << entry.data << "\" " << std::oct << entry.mode << std::dec << " " << entry.uid
       << ":" << entry.gid;
  for (const auto& [name, value] : entry.xattrs) *out << " " << name << "=" << value;
}

inline Entry file(const std::string& content, unsigned mode = 0644) {
  return {'f', content, mode, 0, 0, {}};
}
inline Entry dir(unsigned mode = 0755) {
  return {'d', "", mode, 0, 0, {}};
}
inline Entry link(const std::string& target) {
  return {'l', target, 0777, 0, 0, {}};
}
inline Entry fifo(unsigned mode = 0644) {
  return {'p', "", mode, 0, 0, {}};
}
inline Entry socket_file() {
  return {'s', "", 0644, 0, 0, {}};
}
inline Entry device() {
  return {'c', "1:3", 0644, 0, 0, {}};
}

/// By path; "." stands for the root when its attributes matter.
using Tree = std::map<std::string, Entry>;

inline void must(bool done, const std::string& what) {
  if (!done) throw std::runtime_error(what + ": " + std::strerror(errno));
}

inline void write_entry(const std::string& root, const std::string& name, const Entry& entry) {
  const std::string path = root + "/" + name;
  switch (entry.kind) {
    case 'd':
      must(::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST, path);
      break;
    case 'l':
      must(::symlink(entry.data.c_str(), path.c_str()) == 0, path);
      break;
    case 'p':
      must(::mkfifo(path.c_str(), 0600) == 0, path);
      break;
    case 's':
      must(::mknod(path.c_str(), S_IFSOCK | 0600, 0) == 0, path);
      break;
    case 'c':
      must(::mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0, path);
      break;
    default:
      std::ofstream(path, std::ios::binary) << entry.data;
  }
  must(::lchown(path.c_str(), entry.uid, entry.gid) == 0, path);
  if (entry.kind != 'l') must(::chmod(path.c_str(), entry.mode) == 0, path);
  for (const auto& [xattr, value] : entry.xattrs) {
    must(::lsetxattr(path.c_str(), xattr.c_str(), value.data(), value.size(), 0) == 0, path + " " + xattr);
  }
  const struct timespec old[2] = {{0, 0}, {0, 0}};  // as ostree checks out
  must(::utimensat(AT_FDCWD, path.c_str(), old, AT_SYMLINK_NOFOLLOW) == 0, path);
}

inline void write_tree(const std::string& root, const Tree& tree) {
  for (const auto& [path, entry] : tree) write_entry(root, path, entry);
}

inline Entry read_entry(const std::string& path) {
  struct stat info {};
  must(::lstat(path.c_str(), &info) == 0, path);
  Entry entry;
  entry.mode = info.st_mode & 07777;
  entry.uid = info.st_uid;
  entry.gid = info.st_gid;
  switch (info.st_mode & S_IFMT) {
    case S_IFDIR:
      entry.kind = 'd';
      break;
    case S_IFIFO:
      entry.kind = 'p';
      break;
    case S_IFSOCK:
      entry.kind = 's';
      break;
    case S_IFLNK:
      entry.kind = 'l';
      entry.data = std::filesystem::read_symlink(path).string();
      break;
    case S_IFCHR:
      entry.kind = 'c';
      entry.data = std::to_string(major(info.st_rdev)) + ":" + std::to_string(minor(info.st_rdev));
      break;
    default: {
      std::ifstream in(path, std::ios::binary);
      entry.data.assign(std::istreambuf_iterator<char>(in), {});
    }
  }
  char names[4096];
  const ssize_t size = ::llistxattr(path.c_str(), names, sizeof names);
  for (ssize_t at = 0; at < size; at += static_cast<ssize_t>(std::strlen(names + at)) + 1) {
    char value[4096];
    const ssize_t got = ::lgetxattr(path.c_str(), names + at, value, sizeof value);
    must(got >= 0, path);
    entry.xattrs[names + at] = std::string(value, static_cast<std::size_t>(got));
  }
  return entry;
}

inline void read_into(Tree& tree, const std::string& root, const std::string& below) {
  const std::string here = below.empty() ? root : root + "/" + below;
  for (const auto& found : std::filesystem::directory_iterator(here)) {
    const std::string name = found.path().filename().string();
    const std::string path = below.empty() ? name : below + "/" + name;
    tree[path] = read_entry(root + "/" + path);
    if (tree[path].kind == 'd') read_into(tree, root, path);
  }
}

/// All below `root`, without the root itself.
inline Tree read_tree(const std::string& root) {
  Tree tree;
  read_into(tree, root, "");
  return tree;
}

}  // namespace rasupd::test
