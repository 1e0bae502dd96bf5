// The two ends of a trial. Each is a row of durable steps; the record in /var goes last, so that a machine
// that is cut on the way takes the row up again at its next boot.

#include "base/failpoint.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "health/situation.hpp"
#include "policy/version.hpp"
#include "upgrade/upgrade.hpp"

namespace rasupd {
namespace {

/// What becomes good, and what the floor needs to know of it.
struct Good {
  std::string deployment, digest, version, repository;
};

Good good_of(const TrialRecord& record) {
  return {record.deployment, record.digest, record.version, record.repository};
}

Good good_of(const Deployment& booted) {
  return {deployment_id(booted), booted.manifest_digest, booted.version,
          booted.image ? floor_key(*booted.image) : ""};
}

/// Never lowers it: an image that was taken with --allow-downgrade is good all the same.
Result<void> raise_floor(const std::string& state_dir, const Good& good) {
  if (good.version.empty() || good.repository.empty()) return {};
  const auto floor = TRY(read_floor(state_dir, good.repository));
  if (floor && policy::compare_versions(good.version, *floor) <= 0) return {};
  return write_floor(state_dir, good.repository, good.version);
}

/// All that follows the record that it is good.
Result<void> after_recording(const World& world, LockedHost& host, const Situation& now, const Good& good,
                             const std::string& verb, bool boots) {
  TRY(raise_floor(now.state_dir, good));
  TRY(failpoint("mark-good-floor"));
  TRY(tell_verdict(now.state_dir, health_event(world, "mark-good", verb, "ok", good.digest, "")));
  TRY(failpoint("mark-good-journaled"));
  if (!now.record) return {};
  // Another tool, or a cut in the middle of the switch, may have left something else first.
  if (boots && now.first != good.deployment) TRY(boot_from(host, good.deployment));
  TRY(end_trial(host));
  TRY(failpoint("mark-good-counter"));
  TRY(drop_trial(now.state_dir));
  return {};
}

/// What was kept until the verdict is not needed any more.
void tidy(const World& world, LockedHost& host, std::vector<std::string>& warnings) {
  auto repo = Repo::open(path_join(world.sysroot, "ostree/repo"));
  if (!repo) {
    warnings.push_back("old deployments stay: " + repo.error().message);
    return;
  }
  clean_up(host, *repo, warnings);
}

/// The deployment that boots instead; nullptr when there is none.
const Deployment* way_back(const HostState& host, const Situation& now, const Bad& bad) {
  const auto find = [&](const std::string& id) -> const Deployment* {
    for (const Deployment& deployment : host.deployments) {
      if (!deployment.staged && id != bad.deployment && deployment_id(deployment) == id) return &deployment;
    }
    return nullptr;
  };
  if (const Deployment* previous = find(bad.previous)) return previous;
  if (const Deployment* booted = find(now.booted)) return booted;
  return host.rollback ? find(deployment_id(host.deployments[*host.rollback])) : nullptr;
}

}  // namespace

JournalEvent health_event(const World& world, const std::string& event, const std::string& verb,
                          const std::string& result, const std::string& digest, const std::string& error) {
  JournalEvent out;
  out.event = event;
  out.time = rfc3339(world.clock.now());
  out.verb = verb;
  out.result = result;
  out.digest = digest;
  out.error = error;
  return out;
}

Result<void> tell_verdict(const std::string& state_dir, const JournalEvent& event) {
  // A finalize lies between two trials of one image.
  const auto last = TRY(last_event_of(state_dir, {"rollback", "mark-good", "finalize"}));
  if (last && last->event == event.event && last->digest == event.digest) return {};
  return append_journal(state_dir, event);
}

Result<std::vector<std::string>> make_good(const World& world, LockedHost& host, const Situation& now,
                                           const std::string& verb) {
  const Deployment& booted = host.state().deployments[*host.state().booted];
  const Good good = now.on_trial() ? good_of(*now.record) : good_of(booted);
  if (!now.good || now.good->deployment != good.deployment) {
    TRY(write_good(now.state_dir, {good.deployment, good.digest, rfc3339(world.clock.now())}));
  }
  TRY(failpoint("mark-good-recorded"));
  TRY(after_recording(world, host, now, good, verb, true));
  std::vector<std::string> warnings;
  if (now.record) tidy(world, host, warnings);
  return warnings;
}

Result<std::vector<std::string>> finish_good(const World& world, LockedHost& host, const Situation& now) {
  const bool runs = now.on_trial();
  TRY(after_recording(world, host, now, good_of(*now.record), "check", runs));
  std::vector<std::string> warnings;
  if (!runs) {
    warnings.push_back("deployment " + now.record->deployment.substr(0, 12) +
                       " was marked good, but this start is an older one; it boots next");
  }
  return warnings;
}

Bad bad_of(const Situation& now) {
  return {now.record->deployment, now.record->digest, now.record->previous};
}

Result<std::vector<std::string>> give_up(const World& world, LockedHost& host, const Situation& now,
                                         const Bad& bad, const std::string& reason, const std::string& why) {
  const Deployment* target = way_back(host.state(), now, bad);
  if (!target) {
    return fail(Kind::Boot, "there is no deployment to go back to",
                "`rasupd status` lists them; nothing was changed");
  }
  const std::string next = deployment_id(*target), next_digest = target->manifest_digest;
  std::vector<std::string> warnings;
  if (host.state().staged) warnings.push_back("what was staged is dropped");
  // The same image under another deployment (kernel arguments alone differ) must stay takeable.
  if (!bad.digest.empty() && bad.digest != next_digest) {
    TRY(hold(now.state_dir, {bad.digest, reason, rfc3339(world.clock.now())}));
  }
  TRY(failpoint("give-up-held"));
  if (now.first == bad.deployment) TRY(boot_from(host, next));
  TRY(failpoint("give-up-entries"));
  TRY(tell_verdict(now.state_dir,
                   health_event(world, "rollback", "health", "ok", bad.digest, reason + ": " + why)));
  TRY(failpoint("give-up-journaled"));
  TRY(end_trial(host));
  TRY(drop_trial(now.state_dir));
  return warnings;
}

}  // namespace rasupd
