#include "deploy/etc_planner.hpp"

#include <fmt/format.h>

#include <set>

namespace rasupd {
namespace {

bool is_directory(const EtcNode* node) {
  return node != nullptr && node->is_directory();
}
/// Kind and content are the image's default still; attributes may differ.
bool is_default(const EtcPlace& at) {
  return at.base != nullptr && !at.local->changed;
}

std::set<std::string> names_in(const EtcPlace& at) {
  std::set<std::string> names;
  for (const EtcNode* node : {at.base, at.local, at.vendor}) {
    if (node == nullptr) continue;
    for (const auto& child : node->children) names.insert(child.name);
  }
  return names;
}

std::optional<std::string> xattr_of(const EtcNode* node, const std::string& name) {
  if (node == nullptr) return std::nullopt;
  const auto found = node->attributes.xattrs.find(name);
  return found == node->attributes.xattrs.end() ? std::nullopt : std::optional(found->second);
}

std::string with_article(FileKind kind) {
  return fmt::format("a {}", file_kind_name(kind));
}

}  // namespace

Result<void> EtcPlanner::merge(const EtcPlace& at) {
  if (at.local != nullptr && at.local->kind == FileKind::socket) {
    note(at, "dropped the socket: the program that listens makes it anew");
    return merge_deleted({at.path, at.base, nullptr, at.vendor});
  }
  if (at.local == nullptr) return merge_deleted(at);
  return at.local->is_directory() ? merge_directory(at) : merge_leaf(at);
}

Result<void> EtcPlanner::merge_deleted(const EtcPlace& at) {
  if (at.base == nullptr || at.vendor == nullptr) return {};  // the vendor's addition, or gone on both sides
  if (TRY(vendor_changed(at))) note(at, "kept deleted; the image changed its default");
  plan_.actions.push_back({EtcAction::What::remove, at.path, FileKind::none, {}});
  return {};
}

// ---- the local side is a directory

Result<void> EtcPlanner::merge_directory(const EtcPlace& at) {
  if (is_directory(at.vendor)) return merge_two_directories(at);
  return is_directory(at.base) ? merge_emptied_directory(at) : merge_new_directory(at);
}

Result<void> EtcPlanner::merge_two_directories(const EtcPlace& at) {
  // A base that was no directory tells nothing about this one: as if both sides had added it.
  const EtcNode* base = is_directory(at.base) ? at.base : nullptr;
  settle_attributes(at, base);
  return merge_children({at.path, base, at.local, at.vendor});
}

/// The image removed the directory or made something else of it: what is local inside decides.
Result<void> EtcPlanner::merge_emptied_directory(const EtcPlace& at) {
  const std::size_t actions = plan_.actions.size(), notes = plan_.notes.size();
  create(at, at.local->attributes);
  TRY(merge_children({at.path, at.base, at.local, nullptr}));
  const bool nothing_local = plan_.actions.size() == actions + 1;
  const auto take_back = [&] {
    plan_.actions.erase(plan_.actions.begin() + static_cast<std::ptrdiff_t>(actions), plan_.actions.end());
  };
  if (nothing_local) {
    take_back();
    note_lost_attributes(at);
  } else if (at.vendor != nullptr) {
    take_back();
    plan_.notes.resize(notes);
    conflict(at, "files were added or changed in it here, and the image no longer has a directory there");
  }
  return {};
}

/// A directory where the base has none.
Result<void> EtcPlanner::merge_new_directory(const EtcPlace& at) {
  if (at.vendor != nullptr && at.base == nullptr) {
    conflict(at, "both the machine and the image added it, and a directory does not merge with another kind");
    return {};
  }
  if (at.base != nullptr && TRY(vendor_changed(at))) {
    note(at, at.vendor != nullptr ? "kept the local directory; the image changed the default it replaced"
                                  : "kept the local directory; the image removed the default it replaced");
  }
  create(at, at.local->attributes);
  return merge_children({at.path, nullptr, at.local, nullptr});
}

Result<void> EtcPlanner::merge_children(const EtcPlace& at) {
  const auto child = [](const EtcNode* node, const std::string& name) {
    return node == nullptr ? nullptr : node->child(name);
  };
  for (const auto& name : names_in(at)) {
    TRY(merge(
        {etc_path(at.path, name), child(at.base, name), child(at.local, name), child(at.vendor, name)}));
  }
  return {};
}

// ---- the local side is a file, symlink, FIFO or device

Result<void> EtcPlanner::merge_leaf(const EtcPlace& at) {
  if (is_directory(at.vendor)) return merge_leaf_onto_directory(at);
  if (at.vendor == nullptr) return merge_dropped_leaf(at);
  return is_default(at) ? merge_default_leaf(at) : merge_changed_leaf(at);
}

Result<void> EtcPlanner::merge_leaf_onto_directory(const EtcPlace& at) {
  if (is_directory(at.base)) {
    if (TRY(vendor_changed(at))) {
      note(at, fmt::format("kept the local {} in place of the directory; the image changed things inside it",
                           file_kind_name(at.local->kind)));
    }
    create(at, at.local->attributes);
  } else if (is_default(at)) {
    note_lost_attributes(at);
  } else {
    conflict(at,
             at.base == nullptr
                 ? "both the machine and the image added it, and a directory does not merge with another kind"
                 : "it was changed here, and the image made a directory of it");
  }
  return {};
}

Result<void> EtcPlanner::merge_dropped_leaf(const EtcPlace& at) {
  if (is_default(at)) {
    note_lost_attributes(at);
    return {};
  }
  if (at.base != nullptr)
    note(at, fmt::format("kept the local {}; the image removed its default", file_kind_name(at.local->kind)));
  create(at, at.local->attributes);
  return {};
}

Result<void> EtcPlanner::merge_default_leaf(const EtcPlace& at) {
  if (at.vendor->type == at.local->type) {
    settle_attributes(at, at.base);
  } else {
    note_lost_attributes(at);
  }
  return {};
}

Result<void> EtcPlanner::merge_changed_leaf(const EtcPlace& at) {
  const EtcNode* base = at.base != nullptr && at.base->type == at.local->type ? at.base : nullptr;
  const Sameness like_vendor =
      TRY(compare_etc_nodes(local_root_, *at.local, vendor_root_, *at.vendor, at.path));
  if (like_vendor == Sameness::same) {
    settle_attributes(at, base);
    return {};
  }
  if (TRY(vendor_changed(at))) {
    note(at, fmt::format("kept the local {}; the image {}", file_kind_name(at.local->kind),
                         at.base == nullptr ? "added " + with_article(at.vendor->kind) + " there too"
                         : at.vendor->kind == at.base->kind
                             ? "changed its default too"
                             : "made " + with_article(at.vendor->kind) + " of its default"));
  }
  // Attributes of another kind, or of another's new file, do not belong on the local content.
  const bool comparable = base != nullptr && at.vendor->type == at.local->type;
  create(at, comparable ? merged_attributes(at, base) : at.local->attributes);
  return {};
}

// ---- attributes

/// Mode, owner and each xattr: a local change against `base` stands, else the vendor's. A null base makes all
/// that the local side has a change.
EtcAttributes EtcPlanner::merged_attributes(const EtcPlace& at, const EtcNode* base) {
  const auto &local = at.local->attributes, &vendor = at.vendor->attributes;
  EtcAttributes merged = vendor;
  std::vector<std::string> both;
  const auto settle = [&](const std::string& name, auto was, const auto& here, const auto& there) {
    if (was == here) return false;
    if (here != there && was != there) both.push_back(name);
    return true;
  };
  using Mode = std::optional<mode_t>;
  using Owner = std::optional<std::pair<uid_t, gid_t>>;
  if (at.local->kind != FileKind::symlink &&
      settle("mode", base ? Mode(base->attributes.mode) : Mode(), Mode(local.mode), Mode(vendor.mode))) {
    merged.mode = local.mode;
  }
  if (settle("owner", base ? Owner({base->attributes.uid, base->attributes.gid}) : Owner(),
             Owner({local.uid, local.gid}), Owner({vendor.uid, vendor.gid}))) {
    merged.uid = local.uid;
    merged.gid = local.gid;
  }
  std::set<std::string> names;
  for (const EtcNode* node : {base, at.local}) {
    if (node == nullptr) continue;
    for (const auto& [name, value] : node->attributes.xattrs) names.insert(name);
  }
  for (const auto& name : names) {
    const auto here = xattr_of(at.local, name);
    if (!settle("xattr " + name, xattr_of(base, name), here, xattr_of(at.vendor, name))) continue;
    merged.xattrs.erase(name);
    if (here) merged.xattrs.emplace(name, *here);
  }
  for (const auto& name : both)
    note(at, fmt::format("kept the local {}; the image {} it too", name, base ? "changed" : "sets"));
  return merged;
}

/// The vendor's thing is in place; its attributes become the merged ones.
void EtcPlanner::settle_attributes(const EtcPlace& at, const EtcNode* base) {
  EtcAttributes merged = merged_attributes(at, base);
  if (at.local->kind == FileKind::symlink) merged.mode = at.vendor->attributes.mode;
  if (merged == at.vendor->attributes) return;
  plan_.actions.push_back({EtcAction::What::attributes, at.path, at.vendor->kind, std::move(merged)});
}

/// Only attributes were edited, and what they were edited on is no more.
void EtcPlanner::note_lost_attributes(const EtcPlace& at) {
  if (at.base == nullptr || at.base->attributes == at.local->attributes) return;
  note(at, at.vendor == nullptr
               ? std::string("dropped the local mode, owner or xattr; the image removed what they were on")
               : fmt::format("dropped the local mode, owner or xattr; the image made {} of what they were on",
                             with_article(at.vendor->kind)));
}

// ---- vendor against base

/// True when the vendor's kind, content or anything beneath is not base's.
Result<bool> EtcPlanner::vendor_changed(const EtcPlace& at) const {
  if (at.base == nullptr || at.vendor == nullptr) return at.base != at.vendor;
  return !TRY(same_trees(*at.base, *at.vendor, at.path));
}

Result<bool> EtcPlanner::same_trees(const EtcNode& base, const EtcNode& vendor,
                                    const std::string& path) const {
  if (TRY(compare_etc_nodes(vendor_root_, vendor, base_root_, base, path)) != Sameness::same) return false;
  if (base.children.size() != vendor.children.size()) return false;
  for (const auto& child : base.children) {
    const EtcNode* other = vendor.child(child.name);
    if (other == nullptr || !TRY(same_trees(child, *other, etc_path(path, child.name)))) return false;
  }
  return true;
}

// ---- writing the plan

void EtcPlanner::create(const EtcPlace& at, EtcAttributes attributes) {
  plan_.actions.push_back({EtcAction::What::create, at.path, at.local->kind, std::move(attributes)});
}

void EtcPlanner::conflict(const EtcPlace& at, std::string why) {
  plan_.conflicts.push_back({at.path, at.local->kind, at.vendor->kind, std::move(why)});
}

}  // namespace rasupd
