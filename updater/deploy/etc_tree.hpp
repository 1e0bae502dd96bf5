#pragma once
// EtcNode: one of the three /etc trees as the planner sees it, everything but file contents. Read beneath a
// descriptor, name by name with O_NOFOLLOW; nothing here writes.

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/handle.hpp"
#include "deploy/etc_merge.hpp"

namespace rasupd {

/// What merges one by one. `mode` is the permission bits (07777); that of a symlink says nothing.
struct EtcAttributes {
  mode_t mode = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::map<std::string, std::string> xattrs;
  bool operator==(const EtcAttributes&) const = default;
};

struct EtcNode {
  std::string name;
  FileKind kind = FileKind::none;
  mode_t type = 0;  ///< S_IFMT: tells block from character devices
  EtcAttributes attributes;
  dev_t filesystem = 0;
  ino_t inode = 0;
  off_t size = 0;
  dev_t device = 0;  ///< which device a device node is
  struct timespec modified {};
  std::string link;               ///< a symlink's target
  std::vector<EtcNode> children;  ///< by name, bytewise
  bool changed = false;  ///< local tree, after diff_etc_trees(): kind, content or target is not base's

  const EtcNode* child(const std::string& name) const;
  bool is_directory() const { return kind == FileKind::directory; }
};

/// One name in `directory` without its children; nullopt when it is not there (any more).
Result<std::optional<EtcNode>> read_etc_node(int directory, const std::string& name);
/// All beneath `root`, whose own node is named ".". What vanishes while reading is left out.
Result<EtcNode> read_etc_tree(int root);
/// The names in a directory, sorted bytewise.
Result<std::vector<std::string>> list_etc_names(int directory);

/// Opens `path` beneath `root`, no component of it a symlink; nullopt when there is no such thing (any more).
Result<std::optional<Fd>> open_etc_path(int root, const std::string& path, int flags);
/// The path's directory as open_etc_path() opens it, O_PATH; of a name in the root the root itself.
Result<std::optional<Fd>> open_etc_parent(int root, const std::string& path);
std::string etc_base_name(const std::string& path);
std::string etc_path(const std::string& directory, const std::string& name);  ///< "." + "a" is "a"

enum class Sameness { same, different, gone };
/// Kind, and content (byte by byte), target or device number of two nodes at the same path of two trees;
/// directories are the same. gone: the file of tree `a` has vanished.
Result<Sameness> compare_etc_nodes(int root_a, const EtcNode& a, int root_b, const EtcNode& b,
                                   const std::string& path);

/// Local against base for people, and `changed` in every node of `local`. A file that vanishes meanwhile
/// leaves `local` and counts as deleted.
Result<std::vector<EtcChange>> diff_etc_trees(int base_root, const EtcNode& base, int local_root,
                                              EtcNode& local);

}  // namespace rasupd
