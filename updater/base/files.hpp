#pragma once
// Files, always beneath a directory descriptor or by absolute path, with caps and durable replacement.
// Errors: NotFound is never used here (it is the registry's); a missing file is nullopt or Failed.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/handle.hpp"
#include "base/result.hpp"

namespace rasupd {

/// "a" + "b" with exactly one slash between; an absolute `b` is taken beneath `a` as well.
std::string path_join(std::string_view a, std::string_view b);

/// The whole regular file, nullopt when it does not exist (ENOENT/ENOTDIR only; every other failure is an
/// error). Larger than `max_bytes` is an error of `kind`.
Result<std::optional<std::string>> read_file(const std::string& path, std::size_t max_bytes,
                                             Kind kind = Kind::Failed);
/// Replaces `path`: temp file beside it, fsync, rename, fsync of the directory. Missing parents are not made.
Result<void> write_file_durably(const std::string& path, std::string_view content, unsigned mode);
/// Makes `path` and its missing parents (0755, or `mode` for the last).
Result<void> make_directories(const std::string& path, unsigned mode = 0755);
/// openat(2) of a directory, O_DIRECTORY|O_CLOEXEC.
Result<Fd> open_directory(const std::string& path);
Result<Fd> open_directory_at(int dirfd, const std::string& path);
/// openat2(2) with RESOLVE_BENEATH|RESOLVE_NO_SYMLINKS|RESOLVE_NO_MAGICLINKS: no path leaves `dirfd` and none
/// goes through a symlink. Falls back to a component-wise walk with O_NOFOLLOW where the kernel lacks
/// openat2.
Result<Fd> open_beneath(int dirfd, const std::string& path, int flags, unsigned mode = 0);
/// Names in a directory without "." and "..", sorted bytewise. Missing is an empty list.
Result<std::vector<std::string>> list_directory(const std::string& path);
bool exists(const std::string& path);
Result<void> fsync_directory(const std::string& path);

}  // namespace rasupd
