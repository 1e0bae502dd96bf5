#include <CLI/CLI.hpp>
#include <memory>

#include "verbs/upgrade_options.hpp"

namespace rasupd {

void add_switch(CLI::App& app, Selected& selected) {
  auto* verb =
      app.add_subcommand("switch", "Track another image from now on; the same transaction as upgrade");
  verb->fallthrough();
  struct Options : UpgradeOptions {
    std::string image, transport = "registry";
  };
  auto options = std::make_shared<Options>();
  verb->add_option("IMAGE", options->image,
                   "HOST/REPO[:TAG][@DIGEST], oci:PATH[:TAG] or oci-archive:PATH[:TAG]")
      ->required();
  verb->add_option("--transport", options->transport, "How IMAGE is to be read")
      ->check(CLI::IsMember({"registry", "oci", "oci-archive"}));
  add_upgrade_options(*verb, *options);
  verb->add_flag("--retain", options->retain,
                 "Accepted for bootc's sake: the running deployment is always kept");
  verb->callback([options, &selected] {
    selected.kind = "SwitchResult";
    selected.run = [options](const World& world) -> Result<Answer> {
      options->request.verb = "switch";
      options->request.target = TRY(reference_argument(options->image, options->transport));
      return run_upgrade(world, *options);
    };
  });
}

}  // namespace rasupd
