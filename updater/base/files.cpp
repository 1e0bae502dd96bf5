#include "base/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace rasupd {
namespace {

Result<void> write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(errno, "writing " + path);
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// The walk of open_beneath() for kernels before 5.6.
Result<Fd> walk_beneath(int dirfd, const std::string& path, int flags, unsigned mode) {
  Fd at(::fcntl(dirfd, F_DUPFD_CLOEXEC, 0));
  if (!at) return fail_errno(errno, "duplicating a directory descriptor");
  std::size_t start = 0;
  for (;;) {
    const auto end = path.find('/', start);
    const std::string name = path.substr(start, end == std::string::npos ? end : end - start);
    if (name == "..") return fail_errno(EXDEV, path);
    const bool last = end == std::string::npos;
    if (!name.empty()) {
      const int how = last ? flags | O_NOFOLLOW | O_CLOEXEC : O_DIRECTORY | O_PATH | O_NOFOLLOW | O_CLOEXEC;
      Fd next(::openat(at.get(), name.c_str(), how, mode));
      if (!next) return fail_errno(errno, path);
      at = std::move(next);
    }
    if (last) return at;
    start = end + 1;
  }
}

}  // namespace

std::string path_join(std::string_view a, std::string_view b) {
  std::string out(a);
  while (out.size() > 0 && out.back() == '/') out.pop_back();
  while (!b.empty() && b.front() == '/') b.remove_prefix(1);
  out += '/';
  out += b;
  return out;
}

Result<std::optional<std::string>> read_file(const std::string& path, std::size_t max_bytes, Kind kind) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<std::string>{};
    const int err = errno;
    return fail(kind, fmt::format("reading {}: {}", path, std::generic_category().message(err)));
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return fail(kind, path + ": not a regular file");
  std::string content;
  for (;;) {
    char buffer[16384];
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(kind, fmt::format("reading {}: {}", path, std::generic_category().message(errno)));
    if (n == 0) return std::optional(std::move(content));
    content.append(buffer, static_cast<std::size_t>(n));
    if (content.size() > max_bytes)
      return fail(kind, fmt::format("{}: larger than {} bytes", path, max_bytes));
  }
}

Result<void> write_file_durably(const std::string& path, std::string_view content, unsigned mode) {
  std::string temporary = path + ".XXXXXX";
  Fd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return fail_errno(errno, "creating " + path);
  const auto finish = [&]() -> Result<void> {
    TRY(write_all(fd.get(), content, path));
    if (::fchmod(fd.get(), mode) != 0) return fail_errno(errno, "setting the mode of " + path);
    if (::fsync(fd.get()) != 0) return fail_errno(errno, "syncing " + path);
    if (::rename(temporary.c_str(), path.c_str()) != 0) return fail_errno(errno, "renaming to " + path);
    return fsync_directory(parent_of(path));
  };
  auto done = finish();
  if (!done) ::unlink(temporary.c_str());
  return done;
}

Result<void> make_directories(const std::string& path, unsigned mode) {
  if (::mkdir(path.c_str(), mode) == 0) {
    ::chmod(path.c_str(), mode);  // mkdir(2) is subject to the umask
    return {};
  }
  if (errno == EEXIST) return {};
  if (errno != ENOENT || path == parent_of(path)) return fail_errno(errno, "creating directory " + path);
  TRY(make_directories(parent_of(path), 0755));
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST)
    return fail_errno(errno, "creating directory " + path);
  ::chmod(path.c_str(), mode);
  return {};
}

Result<Fd> open_directory(const std::string& path) {
  return open_directory_at(AT_FDCWD, path);
}

Result<Fd> open_directory_at(int dirfd, const std::string& path) {
  Fd fd(::openat(dirfd, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening directory " + path);
  return fd;
}

Result<Fd> open_beneath(int dirfd, const std::string& path, int flags, unsigned mode) {
  struct open_how how {};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.mode = (flags & O_CREAT) ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, dirfd, path.c_str(), &how, sizeof how);
  if (fd >= 0) return Fd(static_cast<int>(fd));
  if (errno == ENOSYS || errno == EPERM) return walk_beneath(dirfd, path, flags, mode);
  return fail_errno(errno, path);
}

Result<std::vector<std::string>> list_directory(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, Deleter<closedir>> dir(::opendir(path.c_str()));
  if (!dir) {
    if (errno == ENOENT || errno == ENOTDIR) return names;
    return fail_errno(errno, "listing " + path);
  }
  errno = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return fail_errno(errno, "listing " + path);
  std::sort(names.begin(), names.end());
  return names;
}

bool exists(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

Result<void> fsync_directory(const std::string& path) {
  Fd fd = TRY(open_directory(path));
  if (::fsync(fd.get()) != 0) return fail_errno(errno, "syncing directory " + path);
  return {};
}

}  // namespace rasupd
