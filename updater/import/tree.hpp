#pragma once
// Tree: a directory tree in memory as names and object ids, the form in which layers are built and merged.
// Nothing here touches a disk except load() and store(), which read and write directory objects.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fence/repo_writer.hpp"

namespace rasupd {

struct Node;
/// Sorted, so that walking gives one order everywhere.
using Children = std::map<std::string, Node, std::less<>>;

struct Node {
  enum class Kind { leaf, directory };
  Kind kind = Kind::leaf;
  ObjectId id{};         ///< the object of a leaf, the attributes object of a directory
  bool implied = false;  ///< a directory that no entry described: a parent the archive left out
  std::unique_ptr<Children> children{};  ///< of a directory, never null there

  static Node leaf_of(const ObjectId& id);
  static Node directory_of(const ObjectId& meta, bool implied);
  bool is_directory() const { return kind == Kind::directory; }
  Node* child(std::string_view name);
  Node copy() const;
};

/// "a/b/c" into its names; no empty ones.
std::vector<std::string> path_names(std::string_view path);

/// The target of the symlink `id`, nullopt when it is a file.
using TargetOf = std::function<Result<std::optional<std::string>>(const ObjectId&)>;
/// Where `path` really is: symlinks among its names are looked through inside the tree, as a system booted
/// from it would ("/etc" is usr/etc here). Names that do not exist stay as they are. nullopt when a file is
/// in the way. Error Untrusted for a link that climbs above the root, more than 40 links (the kernel's
/// ELOOP), or an absolute link where `absolute` is false.
Result<std::optional<std::vector<std::string>>> real_path(Node& root, const std::vector<std::string>& path,
                                                          const TargetOf& target_of, bool absolute);
/// The node at `path`, through directories only; null when missing.
Node* find_node(Node& root, const std::vector<std::string>& path);

/// The whole tree of a commit.
Result<Node> load_tree(const Repo& repo, const DirectoryIds& root);
/// Writes the directory objects bottom-up.
Result<DirectoryIds> store_tree(RepoWriter& writer, const Node& root);
/// Paths of the implied directories; "" is the root.
std::vector<std::string> implied_paths(const Node& root);
void mark_implied(Node& root, const std::vector<std::string>& paths);

}  // namespace rasupd
