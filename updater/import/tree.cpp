#include "import/tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "base/text.hpp"

namespace rasupd {
namespace {

Result<void> load_children(const Repo& repo, const ObjectId& tree, Node& into) {
  DirectoryListing listing = TRY(repo.list(tree));
  for (auto& [name, id] : listing.leaves) into.children->emplace(std::move(name), Node::leaf_of(id));
  for (auto& [name, ids] : listing.directories) {
    const auto [at, added] = into.children->emplace(std::move(name), Node::directory_of(ids.meta, false));
    if (!added) return fail(Kind::Failed, "the repository lists " + at->first + " twice in one directory");
    TRY(load_children(repo, ids.tree, at->second));
  }
  return {};
}

void collect_implied(const Node& node, const std::string& path, std::vector<std::string>& out) {
  if (node.implied) out.push_back(path);
  for (const auto& [name, child] : *node.children) {
    if (child.is_directory()) collect_implied(child, path.empty() ? name : path + "/" + name, out);
  }
}

}  // namespace

Node Node::leaf_of(const ObjectId& id) {
  Node node;
  node.id = id;
  return node;
}

Node Node::directory_of(const ObjectId& meta, bool implied) {
  Node node;
  node.kind = Kind::directory;
  node.id = meta;
  node.implied = implied;
  node.children = std::make_unique<Children>();
  return node;
}

Node* Node::child(std::string_view name) {
  if (!is_directory()) return nullptr;
  const auto it = children->find(name);
  return it == children->end() ? nullptr : &it->second;
}

Node Node::copy() const {
  Node out;
  out.kind = kind;
  out.id = id;
    out.implied = implied;
  if (!children) return out;
  out.children = std::make_unique<Children>();
  for (const auto& [name, child] : *children) out.children->emplace(name, child.copy());
  return out;
}

std::vector<std::string> path_names(std::string_view path) {
  std::vector<std::string> names;
  while (!path.empty()) {
    const auto slash = path.find('/');
    if (slash != 0) names.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return names;
}

Node* find_node(Node& root, const std::vector<std::string>& path) {
  Node* at = &root;
  for (const std::string& name : path) {
    if (at) at = at->child(name);
  }
  return at;
}

Result<std::optional<std::vector<std::string>>> real_path(Node& root, const std::vector<std::string>& path,
                                                          const TargetOf& target_of, bool absolute) {
  constexpr unsigned kMaxLinks = 40;
  std::vector<std::string> real;
  std::deque<std::string> todo(path.begin(), path.end());
  Node* at = &root;
  unsigned links = 0;
  while (!todo.empty()) {
    const std::string name = std::move(todo.front());
    todo.pop_front();
    if (name == ".") continue;
    if (name == "..") {
      if (real.empty())
        return fail(Kind::Untrusted, "a link leads out of the image: " + printable(join(path, "/")));
      real.pop_back();
      at = find_node(root, real);
      continue;
    }
    if (real.empty() && name == "etc") {
      todo.insert(todo.begin(), {"usr", "etc"});
      continue;
    }
    Node* next = at ? at->child(name) : nullptr;
    if (next && !next->is_directory()) {
      const auto target = TRY(target_of(next->id));
      if (!target) return std::optional<std::vector<std::string>>{};
      const bool from_root = target->starts_with('/');
      if (++links > kMaxLinks || (from_root && !absolute)) {
        return fail(Kind::Untrusted, "an entry leads through a link: " + printable(join(path, "/")));
      }
      if (from_root) {
        real.clear();
        at = &root;
      }
      const auto names = path_names(*target);
      todo.insert(todo.begin(), names.begin(), names.end());
      continue;
    }
    real.push_back(name);
    at = next;
  }
  return std::optional(std::move(real));
}

Result<Node> load_tree(const Repo& repo, const DirectoryIds& root) {
  Node node = Node::directory_of(root.meta, false);
  TRY(load_children(repo, root.tree, node));
  return node;
}

Result<DirectoryIds> store_tree(RepoWriter& writer, const Node& root) {
  DirectoryListing listing;
  for (const auto& [name, child] : *root.children) {
    if (child.is_directory()) {
      listing.directories.emplace_back(name, TRY(store_tree(writer, child)));
    } else {
      listing.leaves.emplace_back(name, child.id);
    }
  }
  return DirectoryIds{TRY(writer.write_directory(std::move(listing))), root.id};
}

std::vector<std::string> implied_paths(const Node& root) {
  std::vector<std::string> out;
  collect_implied(root, "", out);
  return out;
}

void mark_implied(Node& root, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    Node* at = &root;
    for (const std::string& name : path_names(path)) {
      if (at) at = at->child(name);
    }
    if (at && at->is_directory()) at->implied = true;
  }
}

}  // namespace rasupd
