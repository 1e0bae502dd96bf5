#include "deploy/trial.hpp"

#include "deploy/locked_host_body.hpp"

namespace rasupd {

std::string deployment_id(const Deployment& deployment) {
  return deployment.directory.substr(deployment.directory.rfind('/') + 1);
}

Result<void> end_trial(LockedHost& host) {
  return host.body().bootloader->end_trial();
}

Result<void> boot_from(LockedHost& host, const std::string& id) {
  LockedHost::Body& body = host.body();
  TRY(refuse_without_boot(body.state));
  std::vector<std::string> order;
  for (const Deployment& deployment : body.state.deployments) {
    if (deployment.staged) continue;
    if (deployment_id(deployment) == id) {
      order.insert(order.begin(), deployment.directory);
    } else {
      order.push_back(deployment.directory);
    }
  }
  if (order.empty() || order.front().substr(order.front().rfind('/') + 1) != id) {
    return fail(Kind::Boot, "no boot entry leads to deployment " + id, "`rasupd status` lists them");
  }
  // Only where it is first already: elsewhere the switch ends it, and until then a bad deployment must not boot uncounted.
  const std::optional<std::size_t> first = body.state.first;
  if (first && body.state.deployments[*first].directory == order.front()) TRY(body.bootloader->end_trial());
  TRY(switch_entries(body, order));
  return {};
}

}  // namespace rasupd
