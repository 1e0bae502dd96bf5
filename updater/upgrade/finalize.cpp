#include "upgrade/finalize.hpp"

#include <fmt/format.h>

#include "base/failpoint.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "deploy/trial.hpp"
#include "state/state_dir.hpp"
#include "state/trial.hpp"
#include "upgrade/attempt.hpp"
#include "upgrade/upgrade.hpp"

namespace rasupd {
namespace {

JournalEvent event_of(const World& world, const std::string& digest, const std::string& result) {
  JournalEvent event;
  event.event = "finalize";
  event.verb = "finalize";
  event.time = rfc3339(world.clock.now());
  event.digest = digest;
  event.result = result;
  return event;
}

/// A journal that cannot be written is no reason to lose the update.
void tell(const World& world, const std::string& state_dir, const JournalEvent& event) {
  if (auto written = append_journal(state_dir, event); !written) {
    world.progress.note("warning: the journal could not be written: " + written.error().message);
  }
}

/// What is staged is lost with /run; that it could not even be looked at must be told at the next boot.
void tell_unlockable(const World& world, const Error& error) {
  const auto host = read_host(world);
  if (!host || !host->staged || host->deployments[*host->staged].locked) return;
  JournalEvent event = event_of(world, host->deployments[*host->staged].manifest_digest, "failed");
  event.error = std::string(kind_name(error.kind)) + ": " + error.message;
  tell(world, state_directory_of(world, *host), event);
}

TrialRecord record_of(const World& world, const HostState& host, const Deployment& staged,
                      const policy::TrialPlan& plan) {
  TrialRecord record;
  record.digest = staged.manifest_digest;
  record.version = staged.version;
  if (staged.image) record.repository = floor_key(*staged.image);
  record.previous = plan.previous;
  for (const Deployment& deployment : host.deployments) {
    if (deployment_id(deployment) == plan.previous) record.previous_digest = deployment.manifest_digest;
  }
  record.since = rfc3339(world.clock.now());
  record.tries = plan.tries;
  return record;
}

/// The staged one becomes the first entry; `report` says how it will start.
Result<std::optional<DeployResult>> carry_out(const World& world, LockedHost& host, const std::string& state_dir,
                                              const policy::TrialPlan& plan) {
  const Deployment staged = host.state().deployments[*host.state().staged];
  TrialRequest trial;
  trial.tries = plan.tries;
  trial.previous = plan.previous;
  TrialRecord record = record_of(world, host.state(), staged, plan);
  trial.record = [&](const std::string& deployment) {
    record.deployment = deployment;
    return write_trial(state_dir, record);
  };
  // A trial that no longer can happen must not be taken for this one.
  if (plan.tries == 0) TRY(drop_trial(state_dir));
  auto done = finalize_staged(host, trial);
  if (!done && plan.tries > 0) {
    if (auto dropped = drop_trial(state_dir); !dropped) world.progress.note("warning: " + dropped.error().message);
  }
  return done;
}

}  // namespace

Result<policy::TrialPlan> trial_plan(const HostState& host, const std::string& state_dir, unsigned tries) {
  policy::TrialFacts facts;
  facts.tries = tries;
  if (const auto good = TRY(read_good(state_dir))) facts.good = good->deployment;
  if (const Deployment* current = host.current()) facts.bootable.push_back(deployment_id(*current));
  for (const Deployment& deployment : host.deployments) {
    if (!deployment.staged && &deployment != host.current()) facts.bootable.push_back(deployment_id(deployment));
  }
  return policy::plan_trial(facts);
}

Result<FinalizeReport> finalize(const World& world, const Settings& settings) {
  FinalizeReport report;
  auto locked = LockedHost::lock_patiently(world);
  if (!locked) {
    tell_unlockable(world, locked.error());
    return fail(std::move(locked.error()));
  }
  LockedHost host = std::move(*locked);
  if (!host.state().staged || host.state().deployments[*host.state().staged].locked) return report;
  const std::string state_dir = state_directory_of(world, host.state());
  report.digest = host.state().deployments[*host.state().staged].manifest_digest;
  tell(world, state_dir, event_of(world, report.digest, "started"));
  TRY(failpoint("finalize-started"));
  const policy::TrialPlan plan = TRY(trial_plan(host.state(), state_dir, settings.tries));
  auto done = carry_out(world, host, state_dir, plan);
  JournalEvent event = event_of(world, report.digest, done ? "ok" : "failed");
  if (!done) event.error = std::string(kind_name(done.error().kind)) + ": " + done.error().message;
  tell(world, state_dir, event);
  if (!done) return fail(std::move(done.error()));
  if (!plan.warning.empty()) report.warnings.push_back(plan.warning);
  if (*done) {
    report.done = true;
    report.etc_notes = std::move((*done)->notes);
    for (std::string& warning : (*done)->warnings) report.warnings.push_back(std::move(warning));
  }
  report.tries = plan.tries;
  return report;
}

Result<std::string> settle_interrupted_finalize(const World& world, const HostState& host,
                                                const std::string& state_dir) {
  const auto last = TRY(last_event(state_dir, "finalize"));
  if (!last || last->result != "started") return std::string();
  const bool took = host.first && host.deployments[*host.first].manifest_digest == last->digest;
  JournalEvent event = event_of(world, last->digest, took ? "ok" : "failed");
  if (!took) event.error = "Failed: interrupted by a power cut or a kill; the former deployment boots";
  TRY(append_journal(state_dir, event));
  return event.error;
}

}  // namespace rasupd
