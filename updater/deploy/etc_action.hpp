#pragma once
// One step that brings a copy of the vendor's /etc towards the merged one. Only the planner makes them and
// only apply_etc_merge() carries them out; parents come before their children.

#include <string>

#include "deploy/etc_tree.hpp"

namespace rasupd {

struct EtcAction {
  enum class What {
    remove,      ///< `path` and all below it
    create,      ///< replaces what is at `path`: an empty directory, or a copy of the local file, link, FIFO,
                 ///< device
    attributes,  ///< sets `attributes` on what the vendor has at `path`
  };
  What what;
  std::string path;
  FileKind kind = FileKind::none;  ///< create: what the local side had when the plan was made
  EtcAttributes attributes;        ///< create, attributes: the whole merged set
};

}  // namespace rasupd
