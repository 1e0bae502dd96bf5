#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "deploy/deploy.hpp"
#include "state/state_dir.hpp"
#include "state/trial.hpp"
#include "upgrade/attempt.hpp"
#include "verbs/verb.hpp"

namespace rasupd {
namespace {

Json named(const Deployment& d) {
  return {{"digest", d.manifest_digest.empty() ? Json(nullptr) : Json(d.manifest_digest)},
          {"image", d.image ? Json(d.image->str()) : Json(nullptr)},
          {"version", d.version.empty() ? Json(nullptr) : Json(d.version)},
          {"checksum", d.checksum}};
}

std::string told(const char* what, const Deployment& d) {
  return fmt::format("{}: {}{}\n  digest: {}\n", what, d.image ? d.image->str() : d.checksum,
                     d.version.empty() ? "" : "  (version " + d.version + ")", d.manifest_digest);
}

/// The machine's memory of it: what was left is held, what was chosen is not (contract, section 6). Taking a
/// queued rollback back leaves nothing: the older deployment did not even run.
Result<void> remember(const World& world, const std::string& state_dir, const RollbackResult& result,
                      bool undone) {
  if (!undone && result.left && !result.left->manifest_digest.empty() &&
      result.left->manifest_digest != result.next.manifest_digest) {
    const std::string now = rfc3339(world.clock.now());
    TRY(hold(state_dir, {result.left->manifest_digest, "rolled-back", now}));
  }
  TRY(lift(state_dir, result.next.manifest_digest));
  TRY(drop_trial(state_dir));  // a trial ends with the choice of a person
  return {};
}

Result<RollbackResult> go_back(const World& world, std::string& state_dir, bool apply,
                               std::vector<std::string>& warnings) {
  HostState host = TRY(read_host(world));
  if (host.current()) state_dir = state_directory_of(world, host);
  if (apply) TRY(require_running(host, "--apply"));
  if (!host.rollback && !host.problems.empty()) {
    return fail(Kind::Boot, join(host.problems, "; "), "mend this first: nothing was changed");
  }
  if (!host.rollback) {
    return fail(Kind::Boot, "there is no other deployment to go back to", "`rasupd status` lists them");
  }
  LockedHost locked = TRY(LockedHost::lock(world));
  RollbackResult result = TRY(rollback(locked));
  // The entries are switched: what fails from here on cannot undo that and must not look as if it had.
  if (auto done = remember(world, state_dir, result, host.rollback_queued); !done) {
    warnings.push_back("what was left is not held: " + done.error().message);
  }
  if (auto now = read_host(world)) refresh_reboot_required(world, *now);
  return result;
}

Result<Answer> run(const World& world, bool apply) {
  std::string state_dir;
  std::vector<std::string> warnings;
  auto result = go_back(world, state_dir, apply, warnings);
  if (!state_dir.empty()) {
    record_attempt(world, state_dir, "rollback", result ? result->next.manifest_digest : "",
                   result.has_value(), result ? nullptr : &result.error());
  }
  TRY(result);
  Answer answer;
  answer.changed = true;
  answer.fields = std::make_shared<Json>(
      Json{{"next", named(result->next)}, {"rebooting", apply}, {"warnings", warnings}});
  for (const std::string& warning : warnings) world.progress.note("warning: " + warning);
  (*answer.fields)["droppedStaged"] = result->dropped_staged ? named(*result->dropped_staged) : Json(nullptr);
  answer.human = told("Next boot", result->next);
  if (result->dropped_staged)
    answer.human = told("Dropped what was staged", *result->dropped_staged) + answer.human;
  if (apply) TRY(request_reboot(world));
  return answer;
}

}  // namespace

void add_rollback(CLI::App& app, Selected& selected) {
  auto* verb =
      app.add_subcommand("rollback", "Make the previous deployment the next default; downloads nothing");
  verb->fallthrough();
  auto apply = std::make_shared<bool>(false);
  auto soft = std::make_shared<std::string>();
  verb->add_flag("--apply", *apply, "Reboot into it");
  verb->add_option("--soft-reboot", *soft)->group("");
  verb->callback([apply, soft, &selected] {
    selected.kind = "RollbackResult";
    selected.run = [apply, soft](const World& world) -> Result<Answer> {
      if (!soft->empty())
        return fail(Kind::Usage, "--soft-reboot is not supported by the libostree this was built with");
      return run(world, *apply);
    };
  });
}

}  // namespace rasupd
