// mark-good and mark-bad: a person's or a fleet's verdict.

#include "base/text.hpp"
#include "deploy/trial.hpp"
#include "health/situation.hpp"
#include "upgrade/attempt.hpp"

namespace rasupd {
namespace {

/// Under the lock: this boot counted and what was interrupted finished, as at boot.
Result<Reconciled> settle(const World& world, LockedHost& host, const char* verb) {
  TRY(require_running(host.state(), verb));
  return reconcile(world, host);
}

/// What goes when somebody calls it bad, and what comes. A trial that is pending is meant, whatever runs.
Bad subject_of(const HostState& host, const Situation& now) {
  if (now.record) return bad_of(now);
  Bad bad{now.booted, now.digest, ""};
  if (host.rollback) bad.previous = deployment_id(host.deployments[*host.rollback]);
  return bad;
}

std::string first_digest(const HostState& host) {
  return host.first ? host.deployments[*host.first].manifest_digest : "";
}

/// Said before, and still what will happen.
Result<bool> is_bad_already(const Situation& now, const Bad& bad) {
  if (now.first == bad.deployment) return false;
  for (const Held& held : TRY(read_held(now.state_dir))) {
    if (held.digest == bad.digest && policy::ends_a_trial(held.reason)) return true;
  }
  return false;
}

}  // namespace

Result<Verdict> mark_good(const World& world) {
  TRY(require_running(TRY(read_host(world)), "mark-good"));
  LockedHost host = TRY(LockedHost::lock_patiently(world));
  Reconciled settled = TRY(settle(world, host, "mark-good"));
  const Situation& now = settled.now;
  if (!now.readable)
    return fail(Kind::Failed, join(now.warnings, "; "), "mend this first: nothing was changed");
  if (now.record && !now.on_trial()) {
    Error error{Kind::Held,
                "what runs is not what is on trial (" + now.record->digest + "): nothing was marked",
                "boot that one, or end its trial with `rasupd health mark-bad`"};
    error.reason = "trial";
    return fail(std::move(error));
  }
  const auto last = TRY(last_event_of(now.state_dir, {"rollback", "mark-good"}));
  const bool unseen = last && last->event == "rollback";  // good also takes note of what went wrong before
  Verdict verdict{false, now.digest, "", false, std::move(settled.warnings)};
  verdict.changed =
      settled.changed || now.record || !now.good || now.good->deployment != now.booted || unseen;
  if (verdict.changed) {
    for (std::string& warning : TRY(make_good(world, host, now, "mark-good"))) {
      verdict.warnings.push_back(std::move(warning));
    }
    if (now.record) announce(kAnnounceGood, now.digest + " was marked good");
  }
  refresh_motd(world, now.state_dir);
  verdict.next = first_digest(host.state());
  return verdict;
}

Result<Verdict> mark_bad(const World& world, bool apply) {
  TRY(require_running(TRY(read_host(world)), "mark-bad"));
  LockedHost host = TRY(LockedHost::lock_patiently(world));
  Reconciled settled = TRY(settle(world, host, "mark-bad"));
  const Situation& now = settled.now;
  if (!now.readable)
    return fail(Kind::Failed, join(now.warnings, "; "), "mend this first: nothing was changed");
  const Bad bad = subject_of(host.state(), now);
  Verdict verdict{false, bad.digest, "", false, std::move(settled.warnings)};
  verdict.changed = settled.changed;
  if (now.record || !TRY(is_bad_already(now, bad))) {
    for (std::string& warning : TRY(give_up(world, host, now, bad, policy::kMarkedBad, "somebody said so"))) {
      verdict.warnings.push_back(std::move(warning));
    }
    verdict.changed = true;
    announce(kAnnounceRollback, bad.digest + " was marked bad and is held");
    TRY(host.reload());
  }
  refresh_motd(world, now.state_dir);
  refresh_reboot_required(world, host.state());
  verdict.next = first_digest(host.state());
  if (!apply) return verdict;
  if (auto asked = request_reboot(world); !asked) {
    asked.error().changed = verdict.changed;
    return fail(std::move(asked.error()));
  }
  verdict.rebooting = true;
  return verdict;
}

}  // namespace rasupd
