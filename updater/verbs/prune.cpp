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

Result<Answer> run(const World& world) {
  LockedHost host = TRY(LockedHost::lock(world));
  const auto removed = TRY(clean_deployments(host, false));
  TRY(host.reload());
  Repo repo = TRY(Repo::open(path_join(world.sysroot, "ostree/repo")));
  std::vector<std::string> kept;
  for (const Deployment& deployment : host.state().deployments) kept.push_back(deployment.checksum);
  const Pruned pruned = TRY(prune_images(repo, kept, false));
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
