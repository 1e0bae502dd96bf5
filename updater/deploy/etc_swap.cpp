#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/files.hpp"
#include "deploy/locked_host_body.hpp"

namespace rasupd {
namespace {

constexpr const char* kNew = "etc.rasupd-new";

Result<void> refuse_conflicts(const EtcPlan& plan) {
  if (plan.conflicts.empty()) return {};
  const EtcConflict& first = plan.conflicts.front();
  const std::string more =
      plan.conflicts.size() == 1 ? "" : fmt::format(" (and {} more)", plan.conflicts.size() - 1);
  return fail(Kind::Unsuitable, fmt::format("/etc/{}: {}{}", first.path, first.why, more),
              "move the local file away, or take an image that agrees with it");
}

/// The merged tree stands beside the image's; both change places at once, so a cut leaves either whole.
Result<void> exchange(const Fd& root, const std::string& where) {
  if (::renameat2(root.get(), kNew, root.get(), "etc", RENAME_EXCHANGE) != 0) {
    return fail_errno(errno, "putting the merged /etc into " + where);
  }
  std::error_code error;
  std::filesystem::remove_all(path_join(where, kNew), error);
  if (error) return fail(Kind::Failed, fmt::format("removing the image's copy of /etc: {}", error.message()));
  return {};
}

}  // namespace

Result<std::vector<EtcNote>> merge_etc(LockedHost::Body& body, const std::string& directory) {
  const Deployment* current = body.state.current();
  // A transient /etc leaves no edits in the deployment: there is nothing to carry (R35).
  if (!current || !exists(body.path(current->directory + "/etc"))) return std::vector<EtcNote>{};
  const std::string where = body.path(directory);
  if (!exists(where + "/usr/etc")) return fail(Kind::Unsuitable, "the image has no /etc");
  const Fd base = TRY(open_directory(body.path(current->directory + "/usr/etc")));
  const Fd local = TRY(open_directory(body.path(current->directory + "/etc")));
  const Fd vendor = TRY(open_directory(where + "/usr/etc"));
  EtcPlan plan = TRY(plan_etc_merge(base.get(), local.get(), vendor.get()));
  TRY(refuse_conflicts(plan));
  TRY(body.sysroot.set_mutable(directory, true));
  const Fd root = TRY(open_directory(where));
  if (::mkdirat(root.get(), kNew, 0755) != 0) return fail_errno(errno, "making " + path_join(where, kNew));
  const Fd target = TRY(open_directory_at(root.get(), kNew));
  for (EtcNote& note : TRY(apply_etc_merge(plan, local.get(), vendor.get(), target.get()))) {
    plan.notes.push_back(std::move(note));
  }
  if (::syncfs(target.get()) != 0) return fail_errno(errno, "syncing " + where);
  TRY(exchange(root, where));
  if (::fsync(root.get()) != 0) return fail_errno(errno, "syncing " + where);
  TRY(body.sysroot.set_mutable(directory, false));
  return std::move(plan.notes);
}

}  // namespace rasupd
