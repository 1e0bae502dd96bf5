#include <CLI/CLI.hpp>
#include <memory>

#include "verbs/upgrade_options.hpp"

namespace rasupd {

void add_upgrade(CLI::App& app, Selected& selected) {
  auto* verb =
      app.add_subcommand("upgrade", "Pull what is missing of the tracked image, stage it for the next boot");
  verb->alias("update");
  verb->fallthrough();
  auto options = std::make_shared<UpgradeOptions>();
  add_upgrade_options(*verb, *options);
  verb->add_option("--tag", options->tag, "Track another tag of the same repository")->type_name("TAG");
  verb->callback([options, &selected] {
    selected.kind = "UpgradeResult";
    selected.run = [options](const World& world) { return run_upgrade(world, *options); };
  });
}

}  // namespace rasupd
