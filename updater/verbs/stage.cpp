// unstage, pin and unpin: small calls into the deploy room.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "deploy/deploy.hpp"
#include "upgrade/attempt.hpp"
#include "verbs/verb.hpp"

namespace rasupd {
namespace {

Result<Answer> run_unstage(const World& world) {
  LockedHost host = TRY(LockedHost::lock(world));
  Answer answer;
  answer.changed = TRY(unstage(host));
  if (auto read = host.reload(); !read) {
    read.error().changed = answer.changed;
    return fail(std::move(read.error()));
  }
  refresh_reboot_required(world, host.state());
  answer.human = answer.changed ? "The staged deployment was dropped.\n" : "Nothing is staged.\n";
  return answer;
}

Result<Answer> run_pin(const World& world, std::size_t index, bool pinned) {
  LockedHost host = TRY(LockedHost::lock(world));
  if (index >= host.state().deployments.size()) {
    return fail(Kind::Usage, fmt::format("there is no deployment {}", index), "`rasupd status` numbers them");
  }
  Answer answer;
  answer.changed = host.state().deployments[index].pinned != pinned;
  if (answer.changed) TRY(set_pinned(host, index, pinned));
  answer.human = fmt::format("Deployment {} is {}.\n", index, pinned ? "pinned" : "not pinned");
  return answer;
}

}  // namespace

void add_unstage(CLI::App& app, Selected& selected) {
  auto* verb = app.add_subcommand("unstage", "Drop the staged deployment, nothing else");
  verb->fallthrough();
  verb->callback([&selected] {
    selected.kind = "UnstageResult";
    selected.run = run_unstage;
  });
}

void add_pin(CLI::App& app, Selected& selected) {
  for (const bool pinned : {true, false}) {
    auto* verb = pinned ? app.add_subcommand("pin", "Keep deployment N whatever comes")
                        : app.add_subcommand("unpin", "Release deployment N");
    verb->fallthrough();
    auto index = std::make_shared<std::size_t>(0);
    verb->add_option("N", *index, "Number of the deployment in `rasupd status`")
        ->required()
        ->check(CLI::NonNegativeNumber);
    verb->callback([index, pinned, &selected] {
      selected.kind = pinned ? "PinResult" : "UnpinResult";
      selected.run = [index, pinned](const World& world) { return run_pin(world, *index, pinned); };
    });
  }
}

}  // namespace rasupd
