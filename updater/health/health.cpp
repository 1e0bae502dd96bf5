#include "health/health.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "health/judge.hpp"
#include "health/situation.hpp"
#include "upgrade/attempt.hpp"

namespace rasupd {
namespace {

/// Greenboot's scripts that follow a verdict get this long each.
constexpr std::chrono::seconds kScriptTimeout{60};

void remember(const World& world, const LastRun& run) {
  if (auto written = write_last_run(kRunDirectory, run); !written) {
    world.progress.note("warning: " + written.error().message);
  }
}

/// The checks' outcome; a directory that cannot be read is a failed check, not an excuse.
Result<std::vector<CheckResult>> run_all(const World& world, const Settings& settings) {
  const auto checks = find_checks(world.config_root);
  if (!checks) {
    const Check missing{"find-checks", world.config_root, true};
    return std::vector<CheckResult>{
        {missing, CheckOutcome::failed, std::chrono::milliseconds(0), printable(checks.error().message)}};
  }
  const CheckLimits limits{std::chrono::seconds(settings.check_timeout),
                           std::chrono::seconds(settings.deadline)};
  return run_checks(world, *checks, limits);
}

/// Best effort: what they do is theirs, and nothing here depends on it.
void run_greenboot(const World& world, bool passed) {
  const auto scripts =
      find_scripts(world.config_root, passed ? "etc/greenboot/green.d" : "etc/greenboot/red.d");
  if (!scripts) return;
  for (const std::string& script : *scripts) {
    const auto done = world.runner.run({script}, RunLimits{.timeout = kScriptTimeout});
    if (!done || done->exit_code != 0) world.progress.note("warning: " + printable(script) + " failed");
  }
}

std::string why_failed(const std::vector<CheckResult>& results) {
  for (const CheckResult& result : results) {
    if (result.check.required && !result.passed()) {
      return failed_names(results, true) + " (" + printable(result.check.name, 80) + ": " + result.detail +
             ")";
    }
  }
  return "";
}

/// Everything but the reboot; true when that is to be asked for.
Result<bool> judge(const World& world, const Settings& settings, LastRun& run, HealthReport& report) {
  Reconciled reconciled;
  {
    LockedHost host = TRY(LockedHost::lock_patiently(world));
    reconciled = TRY(reconcile(world, host));
  }
  report.changed = reconciled.changed;
  report.digest = reconciled.now.digest;
  append(report.warnings, std::move(reconciled.warnings));
  refresh_motd(world, reconciled.now.state_dir);
  if (reconciled.reboot) {
    report.verdict = "back";
    return true;
  }
  run.results = TRY(run_all(world, settings));
  report.results = run.results;
  report.passed = all_required_passed(run.results);
  const std::string wanted = failed_names(run.results, false);
  if (!wanted.empty()) report.warnings.push_back("wanted checks failed: " + wanted);
  return act_on(world, settings, report.passed, policy::kHealthFailed, why_failed(run.results), report);
}

}  // namespace

Result<HealthReport> check_health(const World& world, const Settings& settings) {
  const HostState host = TRY(read_host(world));
  TRY(require_running(host, "health check"));
  LastRun run;
  run.time = rfc3339(world.clock.now());
  run.uptime = since_start().value_or(0);
  remember(world, run);
  HealthReport report;
  const auto reboot = judge(world, settings, run, report);
  run.state = !reboot ? RunState::no_verdict : report.passed ? RunState::passed : RunState::failed;
  remember(world, run);
  if (!reboot) {
    Error error = reboot.error();
    error.changed |= report.changed;
    return fail(std::move(error));
  }
  if (!report.results.empty()) run_greenboot(world, report.passed);
  if (*reboot) TRY(reboot_for(world, report));
  return report;
}

Result<HealthStatus> health_status(const World& world) {
  const HostState host = TRY(read_host(world));
  const Situation now = look(world, host);
  HealthStatus status;
  status.trial = now.record;
  status.on_trial = now.on_trial();
  status.good = now.good;
  status.warnings = now.warnings;
  if (now.record) {
    const policy::CheckFacts facts = check_facts(now, false, false);
    if (facts.counts == policy::Counts::tries) {
      status.tries_left = facts.left;
    } else {
      status.tries_left = facts.tries > facts.starts ? facts.tries - facts.starts : 0;
    }
  }
  if (host.running) {
    auto run = read_last_run(kRunDirectory);
    if (run) status.last_run = std::move(*run);
    if (!run) status.warnings.push_back(run.error().message);
  }
  const auto last = last_event_of(now.state_dir, {"rollback", "mark-good"});
  if (!last) status.warnings.push_back(last.error().message);
  if (last && *last && (*last)->event == "rollback") status.last_rollback = **last;
  return status;
}

}  // namespace rasupd
