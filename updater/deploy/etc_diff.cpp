// What the machine changed: local against base, for people and for the planner.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "deploy/etc_tree.hpp"

namespace rasupd {
namespace {

class Differ {
 public:
  Differ(int base_root, int local_root) : base_root_(base_root), local_root_(local_root) {}

  /// False when the local file vanished meanwhile.
  Result<bool> compare(const EtcNode& base, EtcNode& local, const std::string& path) {
    const Sameness sameness = TRY(compare_etc_nodes(local_root_, local, base_root_, base, path));
    if (sameness == Sameness::gone) return false;
    local.changed = sameness == Sameness::different;
    const std::string detail = describe(base, local);
    if (!detail.empty()) changes_.push_back({'M', path, detail});
    if (!local.is_directory()) return true;
    if (base.is_directory()) {
      TRY(compare_children(base, local, path));
    } else {
      for (auto& child : local.children) add(child, etc_path(path, child.name));
    }
    return true;
  }

  std::vector<EtcChange> take() { return std::move(changes_); }

 private:
  Result<void> compare_children(const EtcNode& base, EtcNode& local, const std::string& path) {
    std::set<std::string> names;
    for (const auto& child : base.children) names.insert(child.name);
    for (const auto& child : local.children) names.insert(child.name);
    for (const auto& name : names) {
      const EtcNode* before = base.child(name);
      const auto now = std::find_if(local.children.begin(), local.children.end(),
                                    [&](const EtcNode& node) { return node.name == name; });
      const std::string below = etc_path(path, name);
      if (before == nullptr) {
        add(*now, below);
      } else if (now == local.children.end()) {
        remove(*before, below);
      } else if (!TRY(compare(*before, *now, below))) {
        remove(*before, below);
        local.children.erase(now);
      }
    }
    return {};
  }

  void add(EtcNode& node, const std::string& path) {
    node.changed = true;
    changes_.push_back({'A', path, std::string(file_kind_name(node.kind))});
    for (auto& child : node.children) add(child, etc_path(path, child.name));
  }

  /// Only the top of what is gone, as `ostree admin config-diff` does.
  void remove(const EtcNode& node, const std::string& path) {
    changes_.push_back({'D', path, std::string(file_kind_name(node.kind))});
  }

  static std::string describe(const EtcNode& base, const EtcNode& local) {
    std::vector<std::string> parts;
    const auto &was = base.attributes, &is = local.attributes;
    if (base.kind != local.kind) {
      // What a file and a directory have as modes cannot be compared.
      return fmt::format("{} → {}", file_kind_name(base.kind), file_kind_name(local.kind));
    }
    if (local.changed) parts.push_back(local.kind == FileKind::symlink ? "target" : "content");
    if (local.kind != FileKind::symlink && was.mode != is.mode) {
      parts.push_back(fmt::format("mode {:04o} → {:04o}", was.mode, is.mode));
    }
    if (was.uid != is.uid || was.gid != is.gid) parts.push_back("owner");
    std::set<std::string> names;
    for (const auto& [name, value] : was.xattrs) names.insert(name);
    for (const auto& [name, value] : is.xattrs) names.insert(name);
    for (const auto& name : names) {
      const auto before = was.xattrs.find(name), now = is.xattrs.find(name);
      const bool both = before != was.xattrs.end() && now != is.xattrs.end();
      if (!both || before->second != now->second) parts.push_back("xattr " + name);
    }
    return join(parts, ", ");
  }

  int base_root_, local_root_;
  std::vector<EtcChange> changes_;
};

}  // namespace

Result<std::vector<EtcChange>> diff_etc_trees(int base_root, const EtcNode& base, int local_root,
                                              EtcNode& local) {
  Differ differ(base_root, local_root);
  TRY(differ.compare(base, local, "."));
  return differ.take();
}

}  // namespace rasupd
