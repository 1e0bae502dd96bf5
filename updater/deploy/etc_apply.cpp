// Carrying out an EtcPlan: the vendor's /etc copied, then the plan's actions on the copy.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <set>

#include "base/failpoint.hpp"
#include "base/text.hpp"
#include "deploy/etc_action.hpp"
#include "deploy/etc_copy.hpp"

namespace rasupd {
namespace {

class EtcApplier {
 public:
  EtcApplier(int local, int target) : local_root_(local), target_root_(target) {}

  Result<void> apply(const EtcAction& action) {
    const auto parent = TRY(open_etc_parent(target_root_, action.path));
    if (!parent) {
      return fail(Kind::Failed, "the new /etc has no such directory, or a symlink in its place",
                  "the image's /etc changed after the plan was made; try again");
    }
    const std::string name = etc_base_name(action.path);
    switch (action.what) {
      case EtcAction::What::remove:
        return remove_etc_name(parent->get(), name);
      case EtcAction::What::attributes:
        return set_etc_attributes(parent->get(), name, action.attributes);
      case EtcAction::What::create:
        break;
    }
    return action.kind == FileKind::directory ? create_directory(action, parent->get(), name)
                                              : create_leaf(action, parent->get(), name);
  }

  /// What was put into a directory made it young again.
  Result<void> finish() {
    for (auto at = directories_.rbegin(); at != directories_.rend(); ++at) {
      const auto parent = TRY(open_etc_parent(target_root_, at->first));
      if (parent) TRY(set_etc_time(parent->get(), etc_base_name(at->first), at->second));
    }
    return {};
  }

  std::vector<EtcNote> take_notes() { return std::move(notes_); }

 private:
  Result<void> create_directory(const EtcAction& action, int parent, const std::string& name) {
    TRY(remove_etc_name(parent, name));
    TRY(make_etc_directory(parent, name));
    TRY(set_etc_attributes(parent, name, action.attributes));
    const auto node = TRY(local_node(action.path));
    if (node) directories_.emplace_back(action.path, node->modified);
    return {};
  }

  Result<void> create_leaf(const EtcAction& action, int parent, const std::string& name) {
    const auto from = TRY(open_etc_parent(local_root_, action.path));
    auto node = from ? TRY(read_etc_node(from->get(), name)) : std::nullopt;
    if (!node || node->is_directory() || node->kind == FileKind::socket) return skip(action);
    // What became another kind since planning brings its own attributes.
    if (node->kind == action.kind) node->attributes = action.attributes;
    // Beside it first: if the source vanishes during the copy, the vendor's version is still there.
    const std::string beside = TRY(free_name(parent, name));
    if (!TRY(copy_etc_leaf(from->get(), *node, parent, beside))) return skip(action);
    TRY(remove_etc_name(parent, name));
    if (::renameat(parent, beside.c_str(), parent, name.c_str()) != 0)
      return fail_errno(errno, "renaming the copy");
    return {};
  }

  Result<std::optional<EtcNode>> local_node(const std::string& path) {
    const auto from = TRY(open_etc_parent(local_root_, path));
    if (!from) return std::optional<EtcNode>{};
    return read_etc_node(from->get(), etc_base_name(path));
  }

  /// A name in `directory` that nothing has and that is not `taken`, which the copy is about to get.
  Result<std::string> free_name(int directory, const std::string& taken) {
    for (int i = 0;; ++i) {
      std::string name = fmt::format(".rasupd-merge-{}", i);
      if (name == taken) continue;
      struct stat info {};
      if (::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) return name;
        return fail_errno(errno, "looking for a free name");
      }
    }
  }

  Result<void> skip(const EtcAction& action) {
    notes_.push_back({action.path, "skipped: it vanished while /etc was merged"});
    return {};
  }

  int local_root_, target_root_;
  std::vector<std::pair<std::string, struct timespec>> directories_;
  std::vector<EtcNote> notes_;
};

}  // namespace

Result<std::vector<EtcNote>> apply_etc_merge(const EtcPlan& plan, int local, int vendor, int target) {
  if (!plan.conflicts.empty()) {
    const auto& first = plan.conflicts.front();
    return fail(Kind::Unsuitable,
                fmt::format("/etc cannot be merged: {} conflict(s), first {}: local {}, image {}",
                            plan.conflicts.size(), printable(first.path), file_kind_name(first.local),
                            file_kind_name(first.vendor)),
                "`rasupd etc conflicts` lists them; move or remove the local files");
  }
  TRY(copy_etc_tree(vendor, target).within("copying the image's /etc"));
  TRY(failpoint("etc.copied"));
  EtcApplier applier(local, target);
  for (const auto& action : plan.actions)
    TRY(applier.apply(action).within("merging /etc/" + printable(action.path)));
  TRY(applier.finish().within("merging /etc"));
  return applier.take_notes();
}

}  // namespace rasupd
