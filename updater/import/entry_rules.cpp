#include "import/entry_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "import/tree.hpp"

namespace rasupd {

Result<std::vector<std::string>> tree_path(std::string_view written) {
  if (written.size() > kMaxPath) {
    return fail(Kind::Untrusted,
                fmt::format("a path of {} bytes: {}", written.size(), printable(written, 80)));
  }
  if (!is_utf8(written)) {
    return fail(Kind::Unsuitable, fmt::format("the name is not UTF-8: {}", printable(written)),
                "rename the file in the image");
  }
  std::vector<std::string> path;
  for (std::string& name : path_names(written)) {
    if (name == ".") continue;
    if (name == "..") return fail(Kind::Untrusted, fmt::format("a path with \"..\": {}", printable(written)));
    if (name.size() > kMaxName) {
      return fail(Kind::Untrusted, fmt::format("a name of {} bytes: {}", name.size(), printable(name, 80)));
    }
    path.push_back(std::move(name));
  }
  if (path.size() > kMaxDepth) {
    return fail(Kind::Untrusted,
                fmt::format("a path of {} directories: {}", path.size(), printable(written, 80)));
  }
  // The image's /etc is the deployment's default of it; a whiteout of /etc hides that default.
  if (!path.empty() && (path[0] == "etc" || path[0] == ".wh.etc")) path.insert(path.begin(), "usr");
  return path;
}

bool is_dropped(const std::vector<std::string>& path) {
  constexpr std::array<std::string_view, 5> volatile_directories = {"run", "tmp", "proc", "sys", "dev"};
  return path.size() > 1 && std::find(volatile_directories.begin(), volatile_directories.end(), path[0]) !=
                                volatile_directories.end();
}

Result<Mark> mark_of(std::string_view name) {
  if (!name.starts_with(kWhiteoutPrefix)) return Mark::none;
  if (name == kOpaqueMarker) return Mark::opaque;
  const std::string_view hidden = name.substr(kWhiteoutPrefix.size());
  if (hidden.empty() || hidden == "." || hidden == "..") {
    return fail(Kind::Untrusted,
                fmt::format("a whiteout of nothing or of a parent: \"{}\"", printable(name)));
  }
  return hidden.starts_with(kWhiteoutPrefix) ? Mark::ignored : Mark::whiteout;
}

Result<std::vector<Xattr>> kept_xattrs(std::vector<Xattr> xattrs) {
  if (xattrs.size() > kMaxXattrs) return fail(Kind::Untrusted, "too many extended attributes");
  std::erase_if(xattrs, [](const Xattr& x) {
    return x.name.starts_with("trusted.overlay.") || x.name.starts_with("user.overlay.");
  });
  std::sort(xattrs.begin(), xattrs.end());
  for (std::size_t i = 0; i < xattrs.size(); ++i) {
    const std::string& name = xattrs[i].name;
    if (name.empty() || name.size() > kMaxName || xattrs[i].value.size() > kMaxXattrValue) {
      return fail(Kind::Untrusted, fmt::format("extended attribute {} is too large", printable(name, 80)));
    }
    if (i > 0 && xattrs[i - 1].name == name) {
      return fail(Kind::Untrusted, fmt::format("extended attribute {} is given twice", printable(name, 80)));
    }
  }
  return xattrs;
}

}  // namespace rasupd
