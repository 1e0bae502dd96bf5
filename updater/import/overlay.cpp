#include "import/overlay.hpp"

#include "base/text.hpp"
#include "import/entry_rules.hpp"

namespace rasupd {
namespace {

std::vector<std::string> extended(std::vector<std::string> path, const std::string& name) {
  path.push_back(name);
  return path;
}

/// The directory at `path`; what is missing or not a directory becomes one.
Node* make_directories_in(Node& root, const std::vector<std::string>& path, const ObjectId& meta) {
  Node* at = &root;
  for (const std::string& name : path) {
    Node* next = at->child(name);
    if (!next || !next->is_directory()) {
      next = &at->children->insert_or_assign(name, Node::directory_of(meta, true)).first->second;
    }
    at = next;
  }
  return at;
}

}  // namespace

Result<void> Overlay::apply(OverlayLayer layer) {
  TRY(adopt_links(layer));
  TRY(run(layer.root, &Overlay::hide));
  return run(layer.root, &Overlay::add);
}

/// Hardlinks into lower layers become files of this layer before it hides anything: a layer may well link to
/// a file and remove its old name.
Result<void> Overlay::adopt_links(OverlayLayer& layer) {
  for (const auto& [path, target] : layer.foreign_links) {
    Path parent = path_names(target);
    const std::string name = parent.back();
    parent.pop_back();
    const auto real = TRY(real_path(root_, parent, target_of_, true));
    Node* from = real ? find_node(root_, extended(*real, name)) : nullptr;
    if (!from || from->is_directory()) {
      return fail(Kind::Untrusted, "a hardlink to a file the image does not have: " + printable(path) +
                                       " to " + printable(target));
    }
    Path place = path_names(path);
    const std::string last = place.back();
    place.pop_back();
    Node* directory = find_node(layer.root, place);
    if (!directory || !directory->is_directory()) {
      return fail(Kind::Failed, "the stored layer lacks the directory of its link " + printable(path));
    }
    directory->children->insert_or_assign(last, Node::leaf_of(from->id));
  }
  return {};
}

Result<void> Overlay::run(const Node& upper, void (Overlay::*walk)(const Node&, Node&, const Path&)) {
  jobs_.clear();
  (this->*walk)(upper, root_, {});
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const Job job = jobs_[i];
    const bool adding = walk == &Overlay::add;
    const auto real = TRY(real_path(root_, job.path, target_of_, true));
    if (real && is_dropped(extended(*real, "x"))) continue;
    Node* lower = real ? find_node(root_, *real) : nullptr;
    if (!lower && adding) lower = make_directories_in(root_, real ? *real : job.path, job.upper->id);
    if (lower) (this->*walk)(*job.upper, *lower, real ? *real : job.path);
  }
  return {};
}

void Overlay::hide(const Node& upper, Node& lower, const Path& path) {
  if (upper.children->contains(kOpaqueMarker)) {
    lower.children->clear();
    return;
  }
  for (const auto& [name, child] : *upper.children) {
    if (name.starts_with(kWhiteoutPrefix)) {
      lower.children->erase(name.substr(kWhiteoutPrefix.size()));
      continue;
    }
    Node* below = lower.child(name);
    if (!child.is_directory() || !below) continue;
    if (below->is_directory()) {
      hide(child, *below, extended(path, name));
    } else if (child.implied) {
      jobs_.push_back({&child, extended(path, name)});
    }
  }
}

void Overlay::add(const Node& upper, Node& lower, const Path& path) {
  if (!upper.implied || lower.implied) lower.id = upper.id;
  lower.implied = lower.implied && upper.implied;
  for (const auto& [name, child] : *upper.children) {
    if (name.starts_with(kWhiteoutPrefix)) continue;
    if (!child.is_directory()) {
      lower.children->insert_or_assign(name, Node::leaf_of(child.id));
      continue;
    }
    Node* below = lower.child(name);
    if (below && !below->is_directory() && child.implied) {
      jobs_.push_back({&child, extended(path, name)});
      continue;
    }
    if (!below || !below->is_directory()) {
      below = &lower.children->insert_or_assign(name, Node::directory_of(child.id, child.implied))
                   .first->second;
    }
    add(child, *below, extended(path, name));
  }
}

}  // namespace rasupd
