#include "health/judge.hpp"

#include <fmt/format.h>

#include "upgrade/attempt.hpp"

namespace rasupd {
namespace {

using policy::AfterChecks;

/// Only these need the lock.
bool changes(AfterChecks what) {
  return what == AfterChecks::mark_good || what == AfterChecks::reboot || what == AfterChecks::go_back;
}

const char* word_of(AfterChecks what) {
  switch (what) {
    case AfterChecks::mark_good:
      return "good";
    case AfterChecks::wait:
      return "waiting";
    case AfterChecks::reboot:
      return "retry";
    case AfterChecks::go_back:
      return "back";
    case AfterChecks::nothing:
    case AfterChecks::warn:
      break;
  }
  return "none";
}

/// A trial's checks and every failure are told; a healthy machine's daily round is not.
void tell(const World& world, const Situation& now, bool passed, const std::string& why) {
  if (passed && !now.record) return;
  auto told = append_journal(
      now.state_dir, health_event(world, "health", "check", passed ? "ok" : "failed", now.digest, why));
  if (!told) world.progress.note("warning: the journal could not be written: " + told.error().message);
  if (!passed) announce(kAnnounceFailed, "health checks failed: " + why);
}

Result<void> carry_out(const World& world, LockedHost& host, const Situation& now, AfterChecks what,
                       const std::string& reason, const std::string& why, HealthReport& report) {
  if (what == AfterChecks::mark_good) {
    append(report.warnings, TRY(make_good(world, host, now, "check")));
    report.changed = true;
    if (now.record) announce(kAnnounceGood, now.digest + " was marked good");
  }
  if (what == AfterChecks::go_back) {
    append(report.warnings, TRY(give_up(world, host, now, bad_of(now), reason, why)));
    report.changed = true;
    announce(kAnnounceRollback, now.digest + " failed its trial and is held; going back: " + why);
  }
  return {};
}

}  // namespace

Result<bool> act_on(const World& world, const Settings& settings, bool passed, const std::string& reason,
                    const std::string& why, HealthReport& report) {
  const auto decide = [&](const Situation& now) {
    return policy::after_checks(check_facts(now, passed, settings.mark_good_external));
  };
  const HostState before = TRY(read_host(world));
  Situation now = look(world, before);
  report.digest = now.digest;
  tell(world, now, passed, why);
  AfterChecks what = decide(now);
  if (changes(what)) {
    LockedHost host = TRY(LockedHost::lock_patiently(world));
    now = look(world, host.state());
    what = decide(now);  // somebody may have ended the trial meanwhile
    TRY(carry_out(world, host, now, what, reason, why, report));
  }
  report.verdict = word_of(what);
  refresh_motd(world, now.state_dir);
  if (auto after = read_host(world)) refresh_reboot_required(world, *after);
  return what == AfterChecks::reboot || what == AfterChecks::go_back;
}

Result<void> reboot_for(const World& world, HealthReport& report) {
  auto asked = request_reboot(world);
  if (!asked) {
    asked.error().changed = report.changed;
    asked.error().hint = "reboot by hand";
    return asked;
  }
  report.rebooting = true;
  return {};
}

}  // namespace rasupd
