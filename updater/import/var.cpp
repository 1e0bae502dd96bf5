#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files.hpp"
#include "base/text.hpp"
#include "import/import.hpp"

namespace rasupd {
namespace {

constexpr std::size_t kBlock = 128 * 1024;

tl::unexpected<Error> failed(std::string_view name) {
  return fail_errno(errno, "unpacking /var: " + printable(name));
}

/// Owner first: chown(2) clears setuid bits and file capabilities.
Result<void> apply(int fd, const Attributes& attributes, const std::string& name) {
  if (::fchown(fd, attributes.uid, attributes.gid) != 0 || ::fchmod(fd, attributes.mode & 07777u) != 0) {
    return failed(name);
  }
  for (const Xattr& xattr : attributes.xattrs) {
    if (::fsetxattr(fd, xattr.name.c_str(), xattr.value.data(), xattr.value.size(), 0) != 0)
      return failed(name);
  }
  return {};
}

Result<void> copy_content(const Reader& content, int fd, const std::string& name) {
  std::vector<std::byte> block(kBlock);
  for (;;) {
    const std::size_t n = TRY(content(block));
    if (n == 0) return {};
    for (std::size_t done = 0; done < n;) {
      const ssize_t written = ::write(fd, block.data() + done, n - done);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return failed(name);
      done += static_cast<std::size_t>(written);
    }
  }
}

Result<void> unpack_leaf(const Repo& repo, const ObjectId& id, int directory, const std::string& name) {
  const LeafInfo info = TRY(repo.leaf(id));
  if (info.is_symlink) {
    if (::symlinkat(info.target.c_str(), directory, name.c_str()) != 0 ||
        ::fchownat(directory, name.c_str(), info.attributes.uid, info.attributes.gid, AT_SYMLINK_NOFOLLOW) !=
            0) {
      return failed(name);
    }
    return {};
  }
  const Fd file(
      ::openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return failed(name);
  const Reader content = TRY(repo.content(id));
  TRY(copy_content(content, file.get(), name));
  return apply(file.get(), info.attributes, name);
}

Result<void> unpack_directory(const Repo& repo, const DirectoryIds& ids, int fd, const std::string& path) {
  const DirectoryListing listing = TRY(repo.list(ids.tree));
  for (const auto& [name, id] : listing.leaves) TRY(unpack_leaf(repo, id, fd, name));
  for (const auto& [name, below] : listing.directories) {
    if (::mkdirat(fd, name.c_str(), 0700) != 0) return failed(name);
    const Fd next(::openat(fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next) return failed(name);
    TRY(unpack_directory(repo, below, next.get(), path + "/" + name));
  }
  const Attributes attributes = TRY(repo.directory_attributes(ids.meta));
  return apply(fd, attributes, path);
}

}  // namespace

Result<bool> unpack_var(const Repo& repo, const std::string& commit, const std::string& var_directory) {
  const DirectoryIds root = TRY(repo.root(commit));
  const DirectoryListing listing = TRY(repo.list(root.tree));
  for (const auto& [name, ids] : listing.directories) {
    if (name != "var") continue;
    const auto present = TRY(list_directory(var_directory));
    if (!present.empty())
      return fail(Kind::Failed, var_directory + " is not empty: the image's /var goes only into a new one");
    TRY(make_directories(var_directory));
    const Fd fd = TRY(open_directory(var_directory));
    const DirectoryListing inside = TRY(repo.list(ids.tree));
    TRY(unpack_directory(repo, ids, fd.get(), "/var"));
    ::syncfs(fd.get());
    return !inside.leaves.empty() || !inside.directories.empty();
  }
  return false;
}

}  // namespace rasupd
