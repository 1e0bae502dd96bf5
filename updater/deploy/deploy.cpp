#include "deploy/deploy.hpp"

#include <fmt/format.h>

#include "base/failpoint.hpp"
#include "base/files.hpp"
#include "bootloader/kernel.hpp"
#include "deploy/locked_host_body.hpp"
#include "deploy/origin.hpp"
#include "deploy/scratch.hpp"

namespace rasupd {
namespace {

/// New first, the merge base second as rollback, then what is pinned or another stateroot's. On the running system
/// all the others stay until the new one has proved itself, and with one entry more than before libostree always
/// writes a whole new menu instead of flipping boot.N, which would leave no moment to arm a trial in. Elsewhere the
/// rest leaves the list now and the disk at the next clean-up.
std::vector<std::string> next_order(const HostState& state, const std::string& fresh, const std::string& previous) {
  std::vector<std::string> order{fresh};
  const Deployment* current = state.current();
  const Deployment* second = current;
  for (const Deployment& deployment : state.deployments) {
    if (!deployment.staged && !previous.empty() && deployment.directory.ends_with("/" + previous)) second = &deployment;
  }
  if (second) order.push_back(second->directory);
  if (current && current != second) order.push_back(current->directory);
  for (const Deployment& deployment : state.deployments) {
    if (deployment.staged || &deployment == current || &deployment == second) continue;
    if (state.running || deployment.pinned || deployment.stateroot != current->stateroot)
      order.push_back(deployment.directory);
  }
  return order;
}

Result<DeployResult> stage(LockedHost::Body& body, const TreeRequest& tree, bool locked) {
  TRY(body.sysroot.stage(tree, locked));
  const auto read_back = [&]() -> Result<void> {
    TRY(body.reload());
    if (!body.state.staged || body.state.deployments[*body.state.staged].checksum != tree.commit) {
      return fail(Kind::Boot, "the staged deployment does not read back");
    }
    return failpoint("stage-written");
  };
  if (auto done = read_back(); !done) {
    done.error().changed = true;
    return fail(std::move(done.error()));
  }
  DeployResult result;
  result.staged = true;
  return result;
}

/// Everything that can fail without changing what boots: checkout, /etc, kernels.
Result<DeployResult> prepare(LockedHost::Body& body, const TreeRequest& tree) {
  DeployResult result;
  result.directory = TRY(body.sysroot.deploy(tree));
  TRY(failpoint("deploy-checkout"));
  result.notes = TRY(merge_etc(body, result.directory));
  TRY(failpoint("deploy-etc"));
  const std::string checksum = TRY(body.sysroot.boot_checksum(result.directory));
  TRY(boot::install_kernel(body.world.sysroot, result.directory, tree.stateroot, checksum));
  TRY(failpoint("deploy-entries"));
  return result;
}

/// A half-made deployment would fill the disk that it may have failed on. Never on doubt (R123).
void drop_leftovers(LockedHost::Body& body) {
  if (!body.state.first || !body.state.problems.empty()) return;
  if (auto done = body.sysroot.clean(); !done) {
    body.world.progress.note("warning: what the failed deployment left stays until the next clean-up: " +
                             done.error().message);
  }
}

}  // namespace

Result<DeployResult> deploy_now(LockedHost::Body& body, const TreeRequest& tree, const TrialRequest& trial) {
  auto prepared = prepare(body, tree);
  if (prepared && trial.tries > 0 && trial.record) {
    auto recorded = trial.record(prepared->directory.substr(prepared->directory.rfind('/') + 1));
    if (recorded) recorded = failpoint("trial-recorded");
    if (!recorded) prepared = fail(std::move(recorded.error()));
  }
  if (!prepared) {
    drop_leftovers(body);
    return fail(std::move(prepared.error()));
  }
  DeployResult result = std::move(*prepared);
  auto switched = switch_entries(body, next_order(body.state, result.directory, trial.previous), trial.tries);
  if (!switched) {
    if (!switched.error().changed) drop_leftovers(body);
    return fail(std::move(switched.error()));
  }
  result.warnings = std::move(*switched);
  if (auto done = failpoint("deploy-done"); !done) {
    done.error().changed = true;
    return fail(std::move(done.error()));
  }
  return result;
}

Result<DeployResult> deploy_image(LockedHost& host, const NewDeployment& what) {
  LockedHost::Body& body = host.body();
  TRY(refuse_without_boot(body.state));
  std::vector<std::string> kargs = TRY(kargs_for(body, what));
  const TreeRequest tree{what.stateroot, what.commit, make_origin(what), std::move(kargs)};
  if (body.state.running) return stage(body, tree, what.locked);
  return deploy_now(body, tree);
}

Result<EtcPlan> plan_etc_for(const LockedHost& host, const std::string& commit) {
  LockedHost::Body& body = host.body();
  const Deployment* current = body.state.current();
  if (!current || !exists(body.path(current->directory + "/etc"))) return EtcPlan();
  const Scratch scratch = TRY(Scratch::make(body.world.sysroot));
  const std::string etc = path_join(scratch.path(), "etc");
  if (!TRY(body.sysroot.checkout(commit, "usr/etc", etc)))
    return fail(Kind::Unsuitable, "the image has no /etc");
  const Fd base = TRY(open_directory(body.path(current->directory + "/usr/etc")));
  const Fd local = TRY(open_directory(body.path(current->directory + "/etc")));
  const Fd vendor = TRY(open_directory(etc));
  return plan_etc_merge(base.get(), local.get(), vendor.get());
}

}  // namespace rasupd
