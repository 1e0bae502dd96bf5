// A switch that was cut between libostree's rename and the bootloader's part goes on here, before anything else: the
// next switch or clean-up takes away what the bootloader still reads.

#include <algorithm>

#include "deploy/locked_host_body.hpp"
#include "state/state_dir.hpp"
#include "state/trial.hpp"

namespace rasupd {
namespace {

/// The trial that was recorded for the first entry.
Result<std::optional<TrialRecord>> recorded_trial(const LockedHost::Body& body, const Deployment& first) {
  auto record = TRY(read_trial(state_directory(body.world.sysroot, body.state.running, first.stateroot)));
  if (record && !first.directory.ends_with("/" + record->deployment)) record.reset();
  return record;
}

}  // namespace

Result<void> follow_entries(LockedHost::Body& body) {
  // Entries that cannot be read whole are nothing to follow.
  if (!body.state.problems.empty() || !body.state.first) return {};
  if (TRY(body.bootloader->in_step())) return {};
  const auto trial = TRY(recorded_trial(body, body.state.deployments[*body.state.first]));
  // Something else runs than what was to be tried: that is health's to judge and to turn back.
  if (trial && body.state.running && body.state.booted != body.state.first) return {};
  std::vector<std::string> order;
  for (const Deployment& deployment : body.state.deployments) order.push_back(deployment.directory);
  const boot::Menu now = TRY(body.bootloader->read());
  boot::Next next = TRY(next_menu(body, order));
  if (trial) next.trial = boot::Trial{trial->deployment, trial->tries - std::min(trial->tries, trial->starts)};
  const auto warnings = TRY(body.bootloader->finish(now, next));
  for (const std::string& warning : warnings) body.world.progress.note("warning: " + warning);
  return {};
}

}  // namespace rasupd
