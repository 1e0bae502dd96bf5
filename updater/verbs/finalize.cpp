// finalize (the shutdown unit's verb) and apply.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "deploy/deploy.hpp"
#include "upgrade/attempt.hpp"
#include "upgrade/finalize.hpp"
#include "verbs/verb.hpp"

namespace rasupd {
namespace {

Result<Answer> run_finalize(const World& world) {
  // Lenient: a typing error in a configuration file is no reason to lose an update at shutdown.
  const Settings settings = TRY(load_settings(world.config_root, false));
  for (const std::string& warning : settings.warnings) world.progress.note("warning: " + warning);
  const FinalizeReport report = TRY(finalize(world, settings));
  for (const std::string& warning : report.warnings) world.progress.note("warning: " + warning);
  if (!report.done) return Answer{false, nullptr, "Nothing to finalize.\n"};
  std::string text = "The staged deployment is the first boot entry now";
  if (report.tries > 0) text += fmt::format(", on trial with {} starts", report.tries);
  return Answer{true, nullptr, text + ".\n"};
}

/// What a reboot would bring.
struct Pending {
  std::string digest, index_digest;
  bool staged = false, locked = false;
};

std::optional<Pending> pending_of(const HostState& host) {
  if (host.staged) {
    const Deployment& d = host.deployments[*host.staged];
    return Pending{d.manifest_digest, d.index_digest, true, d.locked};
  }
  if (!host.rollback_queued) return std::nullopt;
  const Deployment& d = host.deployments[*host.first];
  return Pending{d.manifest_digest, d.index_digest, false, false};
}

bool is_digest_of(const std::string& digest, const Deployment& d) {
  return digest == d.manifest_digest || digest == d.index_digest;
}

Result<void> release(const World& world, const std::string& expected) {
  LockedHost host = TRY(LockedHost::lock(world));
  const auto now = pending_of(host.state());
  if (!now || now->digest != expected) return fail(Kind::Busy, "what is staged changed meanwhile", "run it again");
  if (!now->locked) return {};
  TRY(set_staged_locked(host, false));
  refresh_reboot_required(world, host.state());
  return {};
}

Result<Answer> run_apply(const World& world, const std::string& expect) {
  const HostState host = TRY(read_host(world));
  TRY(require_running(host, "apply"));
  const auto pending = pending_of(host);
  Answer answer;
  answer.fields = std::make_shared<Json>(Json{{"rebooting", false}, {"digest", nullptr}});
  const Deployment& booted = *host.current();
  // The same command again after the reboot that it caused (R88).
  if (!pending && (expect.empty() || is_digest_of(expect, booted))) {
    (*answer.fields)["digest"] = booted.manifest_digest;
    answer.human = "Nothing is staged: this is what runs already.\n";
    return answer;
  }
  if (!expect.empty() && (!pending || (expect != pending->digest && expect != pending->index_digest))) {
    return fail(Kind::Untrusted,
                pending ? fmt::format("a reboot would bring {}, not {}", pending->digest, expect)
                        : fmt::format("nothing is staged, and what runs is {}, not {}", booted.manifest_digest, expect),
                "nothing was changed; `rasupd status` tells what is staged");
  }
  if (pending->staged) TRY(ensure_finalizer(world));
  if (pending->locked) TRY(release(world, pending->digest));
  (*answer.fields)["digest"] = pending->digest;
  (*answer.fields)["rebooting"] = true;
  answer.changed = true;
  answer.human = fmt::format("Rebooting into {}.\n", pending->digest);
  TRY(request_reboot(world));
  return answer;
}

}  // namespace

void add_finalize(CLI::App& app, Selected& selected) {
  auto* verb =
      app.add_subcommand("finalize", "Carry out what is staged; run by the shutdown unit")->group("");
  verb->fallthrough();
  verb->callback([&selected] {
    selected.kind = "FinalizeResult";
    selected.run = run_finalize;
  });
}

void add_apply(CLI::App& app, Selected& selected) {
  auto* verb = app.add_subcommand("apply", "Reboot into what is staged (or into a queued rollback)");
  verb->fallthrough();
  auto expect = std::make_shared<std::string>();
  verb->add_option("--expect", *expect, "Refuse when what is staged is not this digest")->type_name("DIGEST");
  verb->callback([expect, &selected] {
    selected.kind = "ApplyResult";
    selected.run = [expect](const World& world) { return run_apply(world, *expect); };
  });
}

}  // namespace rasupd
