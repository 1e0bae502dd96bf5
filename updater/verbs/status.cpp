#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/text.hpp"
#include "config/settings.hpp"
#include "bootloader/detect.hpp"
#include "image/platform.hpp"
#include "upgrade/attempt.hpp"
#include "verbs/status_document.hpp"
#include "verbs/verb.hpp"

namespace rasupd {
namespace {

struct Options {
  std::string format;
  unsigned version = 1;
  bool booted = false;
};

/// A fact that status can live without: what cannot be read is a warning.
template <class T>
T read_or(Result<T> result, T fallback, std::vector<std::string>& warnings) {
  if (result) return std::move(*result);
  warnings.push_back(result.error().message);
  return fallback;
}

/// The trial by /var's record, its starts by the bootloader's counter where it keeps one.
void gather_trial(const World& world, const std::string& state, StatusFacts& f) {
  f.trial = read_or(read_trial(state), {}, f.warnings);
  if (!f.trial) return;
  f.tries_left = f.trial->tries > f.trial->starts ? f.trial->tries - f.trial->starts : 0;
  const auto bootloader = boot::detect(world, f.host.running);
  if (!bootloader) {
    f.warnings.push_back(bootloader.error().message);
    return;
  }
  const auto counter = read_or((*bootloader)->trial(), {}, f.warnings);
  if (counter && counter->deployment == f.trial->deployment) f.tries_left = counter->left;
}

StatusFacts gather(const World& world, HostState host) {
  StatusFacts f;
  f.host = std::move(host);
  const std::string state = state_directory_of(world, f.host);
  if (auto id = read_file("/proc/sys/kernel/random/boot_id", 128); id && *id)
    f.boot_id = std::string(trim(**id));
  if (auto architecture = host_architecture()) f.architecture = *architecture;
  f.role = read_or(read_role(state), {}, f.warnings);
  gather_trial(world, state, f);
  f.held = read_or(read_held(state), {}, f.warnings);
  f.last_attempt = read_or(last_event(state, "attempt"), {}, f.warnings);
  f.last_finalize = read_or(last_event(state, "finalize"), {}, f.warnings);
  f.last_rollback = read_or(last_event(state, "rollback"), {}, f.warnings);
  if (auto settings = load_settings(world.config_root, false)) {
    for (std::string& warning : settings->warnings) f.warnings.push_back(std::move(warning));
  }
  return f;
}

Result<Answer> run(const World& world, const Options& options, bool json) {
  if (options.version > 1) return fail(Kind::Usage, "--format-version: only 0 and 1 are known");
  StatusFacts facts = gather(world, TRY(read_host(world)));
  facts.booted_only = options.booted;
  Answer answer;
  answer.document = true;
  answer.json = options.format == "json";
  if (json || answer.json) answer.fields = std::make_shared<Json>(status_document(facts));
  if (!answer.fields) answer.fields = std::make_shared<Json>(Json::object());
  answer.human = status_text(facts);
  return answer;
}

}  // namespace

void add_status(CLI::App& app, Selected& selected, const Globals& globals) {
  auto* verb = app.add_subcommand("status", "What is booted, staged and kept; takes no lock, writes nothing");
  verb->fallthrough();
  auto options = std::make_shared<Options>();
  verb->add_option("--format", options->format, "human, humanreadable or json")
      ->check(CLI::IsMember({"human", "humanreadable", "json"}));
  verb->add_option("--format-version", options->version, "Version of the JSON document");
  verb->add_flag("--booted", options->booted, "Only what is booted");
  verb->callback([options, &selected, &globals] {
    selected.kind = "StatusResult";
    selected.status = true;
    selected.run = [options, &globals](const World& world) { return run(world, *options, globals.json); };
  });
}

}  // namespace rasupd
