#pragma once
// What a layer may contain and where it goes, as pure functions on names. The rules are ostree-ext's
// (docs/behaviours.md names each) with the OCI image-spec's layer.md for whiteouts. Errors: Untrusted for
// what only an attacker or damage writes, Unsuitable for what is legal but no ostree commit can hold.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "fence/tar.hpp"

namespace rasupd {

/// PATH_MAX of Linux: a longer path could not be checked out.
inline constexpr std::size_t kMaxPath = 4096;
/// NAME_MAX of every file system ostree runs on.
inline constexpr std::size_t kMaxName = 255;
/// XATTR_SIZE_MAX of the kernel (linux/limits.h).
inline constexpr std::size_t kMaxXattrValue = 64 * 1024;
/// A pax header could carry any number of attributes; the kernel lists at most 64 KiB of names.
inline constexpr std::size_t kMaxXattrs = 256;
/// Debian's whole archive unpacks to fewer; each entry costs about 200 bytes of memory.
inline constexpr std::uint64_t kMaxEntries = 1'000'000;
/// A path of more components would only serve to exhaust a recursion; PATH_MAX allows 2048 of "a/".
inline constexpr std::size_t kMaxDepth = 256;

inline constexpr std::string_view kWhiteoutPrefix = ".wh.";
inline constexpr std::string_view kOpaqueMarker = ".wh..wh..opq";

/// The path of an entry in the tree: normalised ("./", "/", "//" vanish), etc → usr/etc. Empty for the root.
/// `..` anywhere, an overlong path or a NUL is Untrusted, a name that is not UTF-8 Unsuitable.
Result<std::vector<std::string>> tree_path(std::string_view written);
/// True for what lies beneath run, tmp, proc, sys or dev: mounted over at run time, so dropped and counted.
bool is_dropped(const std::vector<std::string>& path);

enum class Mark {
  none,      ///< an ordinary name
  whiteout,  ///< hides the name behind the prefix
  opaque,    ///< hides everything in this directory
  ignored,   ///< aufs bookkeeping (".wh..wh.plnk"), which every reader skips
};
/// Error Untrusted for a whiteout of "", "." or "..".
Result<Mark> mark_of(std::string_view name);

/// Sorted by name without overlay bookkeeping. Error Untrusted for a name twice, an empty or overlong one.
Result<std::vector<Xattr>> kept_xattrs(std::vector<Xattr> xattrs);

}  // namespace rasupd
