#include "deploy/etc_merge.hpp"

#include "deploy/etc_planner.hpp"

namespace rasupd {
namespace {

/// systemd's stamp of the last boot's /usr (systemd-update-done(8)): in a new deployment it would hide that
/// /usr is new, so neither side's is carried.
constexpr std::string_view kUpdateStamp = ".updated";

bool drop_update_stamp(EtcNode& root) {
  return std::erase_if(root.children, [](const EtcNode& node) { return node.name == kUpdateStamp; }) != 0;
}

}  // namespace

EtcPlan::EtcPlan() = default;
EtcPlan::~EtcPlan() = default;
EtcPlan::EtcPlan(EtcPlan&&) noexcept = default;
EtcPlan& EtcPlan::operator=(EtcPlan&&) noexcept = default;

std::string_view file_kind_name(FileKind kind) {
  switch (kind) {
    case FileKind::none:
      return "nothing";
    case FileKind::file:
      return "file";
    case FileKind::directory:
      return "directory";
    case FileKind::symlink:
      return "symlink";
    case FileKind::fifo:
      return "fifo";
    case FileKind::socket:
      return "socket";
    case FileKind::device:
      return "device";
  }
  return "unknown";
}

Result<EtcPlan> plan_etc_merge(int base, int local, int vendor) {
  EtcNode base_tree = TRY(read_etc_tree(base).within("the old image's /etc"));
  EtcNode local_tree = TRY(read_etc_tree(local).within("/etc"));
  EtcNode vendor_tree = TRY(read_etc_tree(vendor).within("the new image's /etc"));
  drop_update_stamp(base_tree);
  drop_update_stamp(local_tree);
  const bool stamped = drop_update_stamp(vendor_tree);

  EtcPlan plan;
  plan.changes = TRY(diff_etc_trees(base, base_tree, local, local_tree));
  TRY(EtcPlanner(plan, base, local, vendor).merge({".", &base_tree, &local_tree, &vendor_tree}));
  if (stamped)
    plan.actions.push_back({EtcAction::What::remove, std::string(kUpdateStamp), FileKind::none, {}});
  return plan;
}

Result<std::vector<EtcChange>> diff_etc(int base, int local) {
  EtcNode base_tree = TRY(read_etc_tree(base).within("the image's /etc"));
  EtcNode local_tree = TRY(read_etc_tree(local).within("/etc"));
  drop_update_stamp(base_tree);
  drop_update_stamp(local_tree);
  return diff_etc_trees(base, base_tree, local, local_tree);
}

}  // namespace rasupd
