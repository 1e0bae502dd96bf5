// What is staged: finalized, held back, dropped.

#include <fmt/format.h>

#include "base/files.hpp"
#include "deploy/locked_host_body.hpp"

namespace rasupd {
namespace {

constexpr std::size_t kMaxOriginBytes = 64u << 10;

std::vector<std::string> entries_of(const HostState& state) {
  std::vector<std::string> out;
  for (const Deployment& deployment : state.deployments) {
    if (!deployment.staged) out.push_back(deployment.directory);
  }
  return out;
}

}  // namespace

Result<std::optional<DeployResult>> finalize_staged(LockedHost& host, const TrialRequest& trial) {
  LockedHost::Body& body = host.body();
  TRY(refuse_without_boot(body.state));
  if (!body.state.staged) return std::optional<DeployResult>{};
  const Deployment staged = body.state.deployments[*body.state.staged];
  if (staged.locked) return std::optional<DeployResult>{};
  const auto origin = TRY(read_file(body.path(staged.directory + ".origin"), kMaxOriginBytes));
  const TreeRequest tree{staged.stateroot, staged.checksum, origin.value_or(""), staged.kargs};
  // From here on libostree's own finalizer finds it held back, so its /etc merge runs in no case: on success
  // the switch drops the staged deployment, on failure it stays and says so.
  TRY(body.sysroot.set_staged_locked(true));
  auto done = deploy_now(body, tree, trial);
  if (!done) {
    (void)body.reload();  // the first error is the one to tell
    Error error = std::move(done.error());
    error.message = "finalizing " + staged.checksum.substr(0, 12) + ": " + error.message;
    return fail(std::move(error));
  }
  return std::optional<DeployResult>(std::move(*done));
}

Result<void> set_staged_locked(LockedHost& host, bool locked) {
  LockedHost::Body& body = host.body();
  if (!body.state.staged) return fail(Kind::Boot, "nothing is staged");
  TRY(body.sysroot.set_staged_locked(locked));
  return body.reload();
}

Result<bool> unstage(LockedHost& host) {
  LockedHost::Body& body = host.body();
  if (!body.state.staged) return false;
  TRY(refuse_without_boot(body.state));
  TRY(switch_entries(body, entries_of(body.state)));
  return true;
}

}  // namespace rasupd
