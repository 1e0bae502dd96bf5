#pragma once
// EtcPlanner: the matrix of docs/etc-merge.md as code. One call of merge() per path, from the root down.

#include <string>
#include <vector>

#include "deploy/etc_action.hpp"

namespace rasupd {

/// One path in the three trees; null where a tree has nothing.
struct EtcPlace {
  std::string path;
  const EtcNode *base, *local, *vendor;
};

class EtcPlanner {
 public:
  EtcPlanner(EtcPlan& plan, int base, int local, int vendor)
      : plan_(plan), base_root_(base), local_root_(local), vendor_root_(vendor) {}
  /// Adds to the plan what the path and all below it need. Needs EtcNode::changed of diff_etc_trees().
  Result<void> merge(const EtcPlace& at);

 private:
  Result<void> merge_deleted(const EtcPlace& at);
  Result<void> merge_directory(const EtcPlace& at);
  Result<void> merge_two_directories(const EtcPlace& at);
  Result<void> merge_emptied_directory(const EtcPlace& at);
  Result<void> merge_new_directory(const EtcPlace& at);
  Result<void> merge_leaf(const EtcPlace& at);
  Result<void> merge_leaf_onto_directory(const EtcPlace& at);
  Result<void> merge_dropped_leaf(const EtcPlace& at);
  Result<void> merge_default_leaf(const EtcPlace& at);
  Result<void> merge_changed_leaf(const EtcPlace& at);
  Result<void> merge_children(const EtcPlace& at);

  EtcAttributes merged_attributes(const EtcPlace& at, const EtcNode* base);
  void settle_attributes(const EtcPlace& at, const EtcNode* base);
  void note_lost_attributes(const EtcPlace& at);
  Result<bool> vendor_changed(const EtcPlace& at) const;
  Result<bool> same_trees(const EtcNode& base, const EtcNode& vendor, const std::string& path) const;

  void create(const EtcPlace& at, EtcAttributes attributes);
  void note(const EtcPlace& at, std::string what) { plan_.notes.push_back({at.path, std::move(what)}); }
  void conflict(const EtcPlace& at, std::string why);

  EtcPlan& plan_;
  int base_root_, local_root_, vendor_root_;
};

}  // namespace rasupd
