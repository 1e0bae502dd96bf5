#include "base/failpoint.hpp"
#include "deploy/locked_host_body.hpp"

namespace rasupd {

Result<RollbackResult> rollback(LockedHost& host) {
  LockedHost::Body& body = host.body();
  TRY(refuse_without_boot(body.state));
  const HostState& state = body.state;
  if (!state.rollback || !state.first) {
    return fail(Kind::Boot, "there is no deployment to roll back to", "nothing was changed");
  }
  RollbackResult result;
  result.next = state.deployments[*state.rollback];
  result.left = state.deployments[*state.first];
  if (state.staged) result.dropped_staged = state.deployments[*state.staged];
  std::vector<std::string> order{result.next.directory};
  for (const Deployment& deployment : state.deployments) {
    if (!deployment.staged && deployment.directory != result.next.directory)
      order.push_back(deployment.directory);
  }
  TRY(failpoint("rollback-entries"));
  TRY(switch_entries(body, order));
  return result;
}

}  // namespace rasupd
