#pragma once
// Overlay: layers on top of each other, as trees in memory (OCI image-spec, layer.md "Applying Changesets").
// Whiteouts and opaque markers hide what lower layers have and nothing of their own; an upper entry replaces
// a lower one of another kind; an upper directory's attributes win unless no entry described it. An upper
// entry whose parent is a symlink below, and which its own layer never called a directory, goes where the
// link leads inside the image: the layers of usr-merged systems rely on it. Nothing is read or written
// through any link.

#include <string>
#include <utility>
#include <vector>

#include "import/tree.hpp"

namespace rasupd {

struct OverlayLayer {
  Node root;                                                         ///< with whiteouts as files named .wh.*
  std::vector<std::pair<std::string, std::string>> foreign_links{};  ///< (path, target in lower layers)
};

class Overlay {
 public:
  explicit Overlay(TargetOf target_of) : target_of_(std::move(target_of)) {}

  /// Error Untrusted for a hardlink whose target no lower layer has, or a link out of the image.
  Result<void> apply(OverlayLayer layer);
  /// An empty directory before the first layer.
  Node& root() { return root_; }

 private:
  using Path = std::vector<std::string>;
  /// A directory of the upper layer, to be applied where `path` really leads. Links are followed only between
  /// walks: a walk then changes nothing but what lies beneath it.
  struct Job {
    const Node* upper;
    Path path;
  };
  Result<void> adopt_links(OverlayLayer& layer);
  Result<void> run(const Node& upper, void (Overlay::*walk)(const Node&, Node&, const Path&));
  void hide(const Node& upper, Node& lower, const Path& path);
  void add(const Node& upper, Node& lower, const Path& path);

  TargetOf target_of_;
  Node root_ = Node::directory_of({}, true);
  std::vector<Job> jobs_;
};

}  // namespace rasupd
