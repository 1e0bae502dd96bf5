#include "verbs/upgrade_options.hpp"

#include <CLI/CLI.hpp>

#include "config/settings.hpp"
#include "verbs/report.hpp"

namespace rasupd {

void add_upgrade_options(CLI::App& verb, UpgradeOptions& o) {
  auto* check =
      verb.add_flag("--check", o.request.check, "Only tell whether there is an update; change nothing");
  auto* download = verb.add_flag("--download-only", o.request.download_only,
                                 "Stage held back: a reboot keeps today's image");
  auto* unlock = verb.add_flag("--from-downloaded", o.request.from_downloaded,
                               "Release what --download-only staged; no network");
  auto* apply = verb.add_flag("--apply", o.request.apply, "Reboot into it");
  verb.add_option("--digest", o.digest,
                  "Fetch this digest from the tracked repository; tracking stays on the tag")
      ->type_name("sha256:…");
  verb.add_flag("--allow-downgrade", o.request.allow_downgrade, "Take an older version than the floor");
  verb.add_flag("--retry-held", o.request.retry_held, "Take a digest that failed or was rolled back here");
  verb.add_flag("--unchanged-exit-77", o.unchanged_77, "Exit 77 when nothing changed");
  verb.add_flag("--enforce-container-sigpolicy", o.enforce, "Accepted for bootc's sake: always on");
  verb.add_option("--soft-reboot", o.soft_reboot, "Refused: libostree here cannot do it")->group("");
  check->excludes(download)->excludes(unlock)->excludes(apply);
  download->excludes(unlock)->excludes(apply);
}

Result<Answer> run_upgrade(const World& world, const UpgradeOptions& options) {
  if (!options.soft_reboot.empty()) {
    return fail(Kind::Usage, "--soft-reboot is not supported by the libostree this was built with",
                "leave it out: a plain reboot applies the update");
  }
  UpgradeRequest request = options.request;
  if (!options.digest.empty())
    request.digest = TRY(Digest::parse(options.digest, Kind::Usage).within("--digest"));
  if (!options.tag.empty()) request.tag = options.tag;
  const Settings settings = TRY(load_settings(world.config_root, true));
  UpgradeReport report = TRY(upgrade(world, settings, request));
  for (const std::string& warning : settings.warnings) report.warnings.push_back(warning);
  for (const std::string& warning : report.warnings) world.progress.note("warning: " + warning);
  return answer_of(report, request.check, options.unchanged_77);
}

}  // namespace rasupd
