#include "import/commit_path.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace rasupd {
namespace {

template <class List>
auto find_named(const List& list, const std::string& name) {
  return std::find_if(list.begin(), list.end(), [&](const auto& one) { return one.first == name; });
}

}  // namespace

Result<std::optional<DirectoryListing>> list_at(const Repo& repo, const std::string& commit,
                                                const std::vector<std::string>& path) {
  const DirectoryIds root = TRY(repo.root(commit));
  DirectoryListing at = TRY(repo.list(root.tree));
  for (const std::string& name : path) {
    const auto next = find_named(at.directories, name);
    if (next == at.directories.end()) return std::optional<DirectoryListing>{};
    const ObjectId tree = next->second.tree;
    at = TRY(repo.list(tree));
  }
  return std::optional(std::move(at));
}

Result<std::optional<std::string>> read_at(const Repo& repo, const std::string& commit,
                                           const std::vector<std::string>& directory, const std::string& name,
                                           std::size_t max_bytes) {
  const auto listing = TRY(list_at(repo, commit, directory));
  if (!listing) return std::optional<std::string>{};
  const auto leaf = find_named(listing->leaves, name);
  if (leaf == listing->leaves.end()) return std::optional<std::string>{};
  const std::string where = "/" + join(directory, "/") + "/" + name;
  const LeafInfo info = TRY(repo.leaf(leaf->second));
  if (info.is_symlink || info.size > max_bytes) {
    return fail(Kind::Unsuitable, where + " of the image is no regular file of a sensible size");
  }
  const Reader content = TRY(repo.content(leaf->second));
  std::string bytes(info.size, '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const std::span<std::byte> rest{reinterpret_cast<std::byte*>(bytes.data()) + done, bytes.size() - done};
    const std::size_t n = TRY(content(rest));
    if (n == 0) return fail(Kind::Failed, where + " of the image ends early");
    done += n;
  }
  return std::optional(std::move(bytes));
}

}  // namespace rasupd
