// health check|mark-good|mark-bad|status, and the deadline unit's verb.

#include "health/health.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "config/settings.hpp"
#include "verbs/verb.hpp"

namespace rasupd {
namespace {

/// Lenient: a typing error in a configuration file is no health verdict.
Result<Settings> settings_for_health(const World& world) {
  Settings settings = TRY(load_settings(world.config_root, false));
  for (const std::string& warning : settings.warnings) world.progress.note("warning: " + warning);
  return settings;
}

Json checks_json(const std::vector<CheckResult>& results) {
  Json list = Json::array();
  for (const CheckResult& result : results) list.push_back(check_json(result));
  return list;
}

std::string checks_text(const std::vector<CheckResult>& results) {
  std::string text;
  for (const CheckResult& r : results) {
    const char* word = r.passed()                             ? "passed"
                       : r.outcome == CheckOutcome::timed_out ? "timed out"
                       : r.outcome == CheckOutcome::not_run   ? "not run"
                                                              : "FAILED";
    text += fmt::format("  {:9} {:8} {} ({:.1f} s){}{}\n", word, r.check.required ? "required" : "wanted",
                        printable(r.check.name, 80), static_cast<double>(r.took.count()) / 1000,
                        r.detail.empty() ? "" : ": ", r.detail);
  }
  return text;
}

std::string verdict_text(const HealthReport& report) {
  if (report.verdict == "good") return "Marked good.\n";
  if (report.verdict == "waiting")
    return "On trial; waits for `rasupd health mark-good` (mark_good=external).\n";
  if (report.verdict == "retry") return "On trial with starts left: rebooting for another one.\n";
  if (report.verdict == "back") return "The trial failed: rebooting into the deployment before it.\n";
  return report.passed ? "All required checks passed.\n" : "No trial is pending: nothing follows.\n";
}

Answer report_answer(const World& world, const HealthReport& report) {
  for (const std::string& warning : report.warnings) world.progress.note("warning: " + warning);
  Answer answer;
  answer.changed = report.changed;
  answer.human = checks_text(report.results) + verdict_text(report);
  answer.fields = std::make_shared<Json>(Json{{"digest", json_or_null(report.digest)},
                                              {"passed", report.passed},
                                              {"verdict", report.verdict},
                                              {"checks", checks_json(report.results)},
                                              {"rebooting", report.rebooting},
                                              {"warnings", report.warnings}});
  return answer;
}

Result<Answer> run_check(const World& world) {
  const Settings settings = TRY(settings_for_health(world));
  const HealthReport report = TRY(check_health(world, settings));
  Answer answer = report_answer(world, report);
  if (report.passed) return answer;
  const std::string names = failed_names(report.results, true);
  answer.exit_code = static_cast<int>(Kind::Failed);
  answer.failure =
      std::make_shared<Error>(Error{Kind::Failed,
                                    names.empty() ? std::string("the way back had been decided before")
                                                  : "required checks failed: " + names,
                                    "`rasupd health status` shows what they said", report.changed});
  return answer;
}

Result<Answer> run_deadline(const World& world) {
  const Settings settings = TRY(settings_for_health(world));
  const HealthReport report = TRY(wait_for_deadline(world, settings));
  Answer answer = report_answer(world, report);
  answer.human = report.rebooting ? "No verdict in time: rebooting.\n" : "";
  return answer;
}

Answer verdict_answer(const World& world, const Verdict& verdict, const std::string& human) {
  for (const std::string& warning : verdict.warnings) world.progress.note("warning: " + warning);
  Answer answer;
  answer.changed = verdict.changed;
  answer.human = human;
  answer.fields = std::make_shared<Json>(Json{{"digest", json_or_null(verdict.digest)},
                                              {"next", json_or_null(verdict.next)},
                                              {"rebooting", verdict.rebooting},
                                              {"warnings", verdict.warnings}});
  return answer;
}

Result<Answer> run_mark_good(const World& world) {
  const Verdict verdict = TRY(mark_good(world));
  return verdict_answer(world, verdict, verdict.changed ? "Marked good.\n" : "It is marked good already.\n");
}

Result<Answer> run_mark_bad(const World& world, bool apply) {
  const Verdict verdict = TRY(mark_bad(world, apply));
  const std::string next = fmt::format("Next boot: {}\n", verdict.next);
  return verdict_answer(world, verdict,
                        (verdict.changed ? "Marked bad and held.\n" : "It is held already.\n") + next);
}

Json status_json(const HealthStatus& s) {
  Json out = {{"trial", nullptr}, {"good", nullptr}, {"lastRun", nullptr}, {"lastRollback", nullptr}};
  if (s.trial) {
    out["trial"] = {{"digest", json_or_null(s.trial->digest)},
                    {"version", json_or_null(s.trial->version)},
                    {"deployment", s.trial->deployment},
                    {"previousDigest", json_or_null(s.trial->previous_digest)},
                    {"since", s.trial->since},
                    {"tries", s.trial->tries},
                    {"starts", s.trial->starts},
                    {"triesLeft", s.tries_left ? Json(*s.tries_left) : Json(nullptr)},
                    {"booted", s.on_trial}};
  }
  if (s.good) {
    out["good"] = {
        {"digest", json_or_null(s.good->digest)}, {"deployment", s.good->deployment}, {"since", s.good->since}};
  }
  if (s.last_run) {
    out["lastRun"] = {{"time", s.last_run->time},
                      {"state", run_state_name(s.last_run->state)},
                      {"checks", checks_json(s.last_run->results)}};
  }
  if (s.last_rollback) {
    out["lastRollback"] = {{"time", s.last_rollback->time},
                           {"digest", json_or_null(s.last_rollback->digest)},
                           {"reason", s.last_rollback->error}};
  }
  out["warnings"] = s.warnings;
  return out;
}

std::string status_text(const HealthStatus& s) {
  std::string text;
  if (s.trial) {
    text +=
        fmt::format("On trial: {}{}\n  since {}; {} of {} starts used, {} left{}\n", s.trial->digest,
                    s.trial->version.empty() ? "" : "  (version " + s.trial->version + ")", s.trial->since,
                    s.trial->starts, s.trial->tries, s.tries_left ? std::to_string(*s.tries_left) : "unknown",
                    s.on_trial ? "" : "; another deployment runs");
  } else {
    text += "No trial is pending.\n";
  }
  if (s.good) text += fmt::format("Last good: {}\n  since {}\n", s.good->digest, s.good->since);
  if (s.last_rollback) {
    text += fmt::format("Last trial failed: {}\n  {}\n", s.last_rollback->digest,
                        printable(s.last_rollback->error));
  }
  if (s.last_run) {
    text += fmt::format("Checks of this boot: {}\n", run_state_name(s.last_run->state));
    text += checks_text(s.last_run->results);
  }
  return text;
}

Result<Answer> run_status(const World& world) {
  const HealthStatus status = TRY(health_status(world));
  for (const std::string& warning : status.warnings) world.progress.note("warning: " + warning);
  Answer answer;
  answer.fields = std::make_shared<Json>(status_json(status));
  answer.human = status_text(status);
  return answer;
}

void add(CLI::App& group, const char* name, const char* what, Selected& selected, const char* kind,
         Result<Answer> (*run)(const World&)) {
  auto* verb = group.add_subcommand(name, what);
  verb->fallthrough();
  verb->callback([&selected, kind, run] {
    selected.kind = kind;
    selected.run = run;
  });
}

}  // namespace

void add_health(CLI::App& app, Selected& selected) {
  auto* group = app.add_subcommand("health", "The trial of a new deployment: checks and verdicts");
  group->require_subcommand(1);
  group->fallthrough();
  add(*group, "check", "Run the checks and act on a pending trial (it may reboot then)", selected,
      "HealthCheckResult", run_check);
  add(*group, "mark-good", "What runs is good: end its trial", selected, "HealthMarkGoodResult",
      run_mark_good);
  add(*group, "status", "Trial, last good deployment, checks of this boot", selected, "HealthStatusResult",
      run_status);
  add(*group, "deadline", "Reboot a start that comes to no verdict; run by its unit", selected,
      "HealthDeadlineResult", run_deadline);
  group->get_subcommand("deadline")->group("");
  auto* bad =
      group->add_subcommand("mark-bad", "What is on trial, else what runs, is bad: the next boot goes back");
  bad->fallthrough();
  auto apply = std::make_shared<bool>(false);
  bad->add_flag("--apply", *apply, "Reboot now");
  bad->callback([apply, &selected] {
    selected.kind = "HealthMarkBadResult";
    selected.run = [apply](const World& world) { return run_mark_bad(world, *apply); };
  });
}

}  // namespace rasupd
