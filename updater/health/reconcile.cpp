// What this boot means for the trial (policy::at_boot), carried out under the lock.

#include <fmt/format.h>

#include "health/situation.hpp"
#include "upgrade/finalize.hpp"

namespace rasupd {
namespace {

using policy::AtBoot;

/// One start of the trial, durably: a machine that is cut now has used it.
Result<void> count_start(Situation& now) {
  TrialRecord record = *now.record;
  ++record.starts;
  record.last_boot_id = now.boot_id;
  TRY(write_trial(now.state_dir, record));
  now.record = record;
  return {};
}

/// The trial leaves the medium first and the record last, so that a cut in between comes here again.
Result<void> forget_trial(LockedHost& host, const Situation& now) {
  TRY(end_trial(host));
  TRY(drop_trial(now.state_dir));
  return {};
}

/// Power was cut between arming and the switch, or when only the entries had turned and the bootloader's own files had
/// not: they go back to what runs.
Result<void> turn_back(const World& world, LockedHost& host, const Situation& now) {
  if (now.first != now.record->deployment) return {};
  TRY(append_journal(now.state_dir,
                     health_event(world, "finalize", "finalize", "failed", now.record->digest,
                                  "Failed: interrupted before the bootloader's files followed; the former deployment "
                                  "boots")));
  TRY(boot_from(host, now.booted));
  return {};
}

std::string why_it_fell_back(const Situation& now, const std::string& reason) {
  if (reason != policy::kBootFailed) return "the way back had been decided before this start";
  return fmt::format("{} starts were given and none reached a verdict ({} reached userspace)",
                     now.record->tries, now.record->starts);
}

Result<void> carry_out(const World& world, LockedHost& host, Reconciled& done) {
  Situation& now = done.now;
  const policy::BootVerdict& verdict = done.verdict;
  switch (verdict.action) {
    case AtBoot::nothing:
      return {};
    case AtBoot::keep:
      done.warnings.push_back(verdict.reason + (now.record ? "; the trial is kept" : ""));
      return {};
    case AtBoot::on_trial:
      if (verdict.count) TRY(count_start(now));
      return {};
    case AtBoot::clear:
      done.warnings.push_back("the bootloader counted starts of a deployment that is not on trial: cleared");
      TRY(end_trial(host));
      break;
    case AtBoot::interrupted:
      done.warnings.push_back("the last finalize was interrupted before the switch: upgrade again");
      TRY(turn_back(world, host, now));
      TRY(forget_trial(host, now));
      break;
    case AtBoot::forget:
      TRY(forget_trial(host, now));
      break;
    case AtBoot::finish_good:
      append(done.warnings, TRY(finish_good(world, host, now)));
      break;
    case AtBoot::fell_back:
    case AtBoot::go_back:
      append(done.warnings, TRY(give_up(world, host, now, bad_of(now), verdict.reason,
                                        why_it_fell_back(now, verdict.reason))));
      done.reboot = verdict.action == AtBoot::go_back && verdict.reason != policy::kMarkedBad;
      break;
  }
  done.changed = true;
  return {};
}

}  // namespace

Result<Reconciled> reconcile(const World& world, LockedHost& host) {
  Reconciled done;
  done.now = look(world, host.state());
  // Told first: what follows may be the end of that very trial.
  const std::string lost = TRY(settle_interrupted_finalize(world, host.state(), done.now.state_dir));
  if (!lost.empty()) done.warnings.push_back("the last finalize: " + lost);
  append(done.warnings, done.now.warnings);
  done.verdict = policy::at_boot(boot_facts(done.now));
  TRY(carry_out(world, host, done));
  if (done.changed) {
    TRY(host.reload());
    done.now = look(world, host.state());
  }
  return done;
}

}  // namespace rasupd
