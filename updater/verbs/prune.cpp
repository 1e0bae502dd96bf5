#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/text.hpp"
#include "deploy/deploy.hpp"
#include "import/import.hpp"
#include "verbs/verb.hpp"

namespace rasupd {
namespace {

Result<Pruned> prune_repository(const World& world, LockedHost& host) {
  TRY(host.reload());
  Repo repo = TRY(Repo::open(path_join(world.sysroot, "ostree/repo")));
  std::vector<std::string> kept;
  for (const Deployment& deployment : host.state().deployments) kept.push_back(deployment.checksum);
  return prune_images(repo, kept, false);
}

Result<Answer> run(const World& world) {
  LockedHost host = TRY(LockedHost::lock(world));
  auto cleaned = clean_deployments(host, false);
  if (!cleaned && cleaned.error().kind == Kind::NoSpace) {
    // A full disk has no room for new boot entries: what no deployment needs goes first.
    TRY(prune_repository(world, host));
    cleaned = clean_deployments(host, false);
  }
  const auto removed = TRY(std::move(cleaned));
  auto outcome = prune_repository(world, host);
  if (!outcome) {
    outcome.error().changed = !removed.empty();
    return fail(std::move(outcome.error()));
  }
  const Pruned pruned = *outcome;
  Json list = Json::array();
  for (const Deployment& d : removed) list.push_back({{"checksum", d.checksum}, {"serial", d.serial}});
  Answer answer;
  answer.changed = !removed.empty() || pruned.images + pruned.layers + pruned.objects > 0;
  answer.fields = std::make_shared<Json>(Json{{"deployments", list},
                                              {"images", pruned.images},
                                              {"layers", pruned.layers},
                                              {"objects", pruned.objects},
                                              {"bytesFreed", pruned.bytes}});
  answer.human =
      fmt::format("Removed {} deployments, {} images, {} layers, {} objects ({}).\n", removed.size(),
                  pruned.images, pruned.layers, pruned.objects, human_size(pruned.bytes));
  return answer;
}

}  // namespace

void add_prune(CLI::App& app, Selected& selected) {
  auto* verb =
      app.add_subcommand("prune", "Drop what nothing needs: never booted, rollback, staged or pinned");
  verb->fallthrough();
  verb->callback([&selected] {
    selected.kind = "PruneResult";
    selected.run = run;
  });
}

}  // namespace rasupd
