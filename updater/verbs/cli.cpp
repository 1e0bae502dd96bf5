#include "verbs/cli.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/process.hpp"
#include "base/progress.hpp"
#include "verbs/status_document.hpp"
#include "verbs/verb.hpp"

namespace rasupd {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done or nothing to do · 1 failed · 2 usage · 3 configuration · 4 offline, retry later ·\n"
    "  5 untrusted · 6 no space · 7 held · 8 busy · 9 image unsuitable · 10 boot entries · 11 denied ·\n"
    "  12 not found · 77 unchanged (--unchanged-exit-77) · 130/143 interrupted, nothing changed\n"
    "Nothing ever reboots unless asked.";

void add_globals(CLI::App& app, Globals& globals) {
  app.add_option("--sysroot", globals.sysroot, "Work on the system under DIR instead of the running one")
      ->type_name("DIR");
  app.add_option("--config-root", globals.config_root, "Read /etc, /run and /usr/lib under DIR")
      ->type_name("DIR");
  app.add_flag("--json", globals.json, "Answer with exactly one JSON document on standard output");
  app.add_option("--progress", globals.progress, "How to show progress on standard error")
      ->check(CLI::IsMember({"auto", "tty", "plain", "json", "none"}))
      ->type_name("auto|tty|plain|json|none");
  app.add_option("--progress-fd", globals.progress_fd, "Write progress as JSON lines to this descriptor")
      ->check(CLI::Range(3, 1 << 20))
      ->type_name("FD");
  app.add_flag("-q,--quiet", globals.quiet, "No progress and no notes");
  app.add_flag("-v,--verbose", globals.verbose, "Say more");
}

void build(CLI::App& app, Globals& globals, Selected& selected) {
  add_globals(app, globals);
  app.set_version_flag("--version", "rasupd " RASUPD_VERSION);
  app.footer(kFooter);
  app.require_subcommand(1);
  app.fallthrough();
  add_status(app, selected, globals);
  add_upgrade(app, selected);
  add_switch(app, selected);
  add_apply(app, selected);
  add_rollback(app, selected);
  add_unstage(app, selected);
  add_pin(app, selected);
  add_prune(app, selected);
  add_etc(app, selected);
  add_install(app, selected);
  add_image(app, selected);
  add_health(app, selected);
  add_finalize(app, selected);
}

std::unique_ptr<Progress> choose_progress(const Globals& globals) {
  std::vector<std::unique_ptr<Progress>> parts;
  std::string how = globals.progress;
  if (how == "auto") how = globals.quiet || globals.json ? "none" : ::isatty(2) == 1 ? "tty" : "plain";
  if (globals.quiet && how != "json") how = "none";
  if (how == "tty") parts.push_back(terminal_progress());
  if (how == "plain") parts.push_back(plain_progress());
  if (how == "none") parts.push_back(silent_progress(globals.quiet));
  if (how == "json") parts.push_back(json_progress(2));
  if (globals.progress_fd >= 0) parts.push_back(json_progress(globals.progress_fd));
  return combined_progress(std::move(parts));
}

/// False when standard output did not take it: a full disk, a closed descriptor.
bool print(const std::string& text) {
  const bool whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return std::fflush(stdout) == 0 && whole;
}

void print_error(const Error& error) {
  std::string text = "error: " + error.message + "\n";
  if (!error.hint.empty()) text += "hint: " + error.hint + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

int usage_error(const Globals& globals, bool json, const std::string& kind, const std::string& message) {
  const Error error{Kind::Usage, message, "rasupd --help lists the verbs, rasupd VERB --help their options"};
  if (json || globals.json) print(result_json(kind, fail(error), 2) + "\n");
  print_error(error);
  return 2;
}

int finish(const Globals& globals, const Selected& selected, const Result<Answer>& outcome,
           Progress& progress, int signal) {
  const int code = outcome ? outcome->exit_code : exit_code_of(outcome.error(), signal);
  std::string document;
  if (outcome && outcome->document) {
    document = outcome->fields->dump(2, ' ', false, Json::error_handler_t::replace);
  } else if (!outcome && selected.status) {
    document = failed_status_document(outcome.error(), code);
  } else {
    document = result_json(selected.kind, outcome, code);
  }
  progress.result(document);
  const bool json = globals.json || (outcome && outcome->json);
  bool told = true;
  if (json) told = print(document + "\n");
  if (!json && outcome) told = print(outcome->human);
  if (!outcome && !(json && globals.quiet)) print_error(outcome.error());
  if (outcome && outcome->failure && !(json && globals.quiet)) print_error(*outcome->failure);
  if (told || !outcome) return code;
  print_error({Kind::Failed, "the answer could not be written to standard output",
               outcome->changed ? "what was asked for is done all the same" : ""});
  return static_cast<int>(Kind::Failed);
}

/// Answers are named after all the words of their verb.
std::string kind_of(const CLI::App& app) {
  std::string words;
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    bool upper = true;
    for (const char c : at->get_name()) {
      if (c != '-') words += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
      upper = c == '-';
    }
  }
  if (at->get_require_subcommand_min() > 0) return "UsageResult";  // half a verb is none
  return words + "Result";
}

/// The first word that is neither an option nor an option's value: what was meant as a verb.
std::string meant_verb(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const bool takes_value =
        word == "--sysroot" || word == "--config-root" || word == "--progress" || word == "--progress-fd";
    if (takes_value) ++i;
    if (!word.starts_with("-")) return word;
  }
  return "";
}

/// Places that must exist before any verb looks there.
Result<void> check_globals(const Globals& globals, bool needs_sysroot) {
  const auto is_directory = [](const std::string& path) {
    std::error_code ignored;
    return std::filesystem::is_directory(path, ignored);
  };
  if (needs_sysroot && !is_directory(globals.sysroot)) {
    return fail(Kind::Usage, "--sysroot \"" + globals.sysroot + "\" is not a directory");
  }
  if (!is_directory(globals.config_root)) {
    return fail(Kind::Usage, "--config-root \"" + globals.config_root + "\" is not a directory");
  }
  if (globals.progress_fd >= 0 && ::fcntl(globals.progress_fd, F_GETFD) < 0) {
    return fail(Kind::Usage,
                fmt::format("--progress-fd {}: that descriptor is not open", globals.progress_fd));
  }
  return {};
}

}  // namespace

int run_program(const std::vector<std::string>& arguments, std::stop_token stop, const volatile int& signal) {
  Globals globals;
  Selected selected;
  CLI::App app(
      "rasupd updates an image-based machine: it pulls a signed OCI image, stages it for the next boot,\n"
      "merges /etc three ways, leaves /var untouched, and rolls back without downloading anything.",
      "rasupd");
  build(app, globals, selected);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::Success& request) {
    return app.exit(request);  // --help, --version
  } catch (const CLI::ParseError& problem) {
    const bool json = std::count(arguments.begin(), arguments.end(), "--json") > 0;
    std::string message = problem.what();
    if (app.get_subcommands().empty() && !meant_verb(arguments).empty()) {
      message = "unknown verb \"" + meant_verb(arguments) + "\"";
    }
    return usage_error(globals, json, kind_of(app), message);
  }
  if (!selected.sysroot.empty()) globals.sysroot = selected.sysroot;
  if (auto checked = check_globals(globals, selected.needs_sysroot); !checked) {
    return usage_error(globals, false, selected.kind, checked.error().message);
  }
  const auto progress = choose_progress(globals);
  SystemClock clock;
  SystemRunner runner(stop);
  World world{globals.sysroot, globals.config_root, clock, runner, *progress, stop};
  const Result<Answer> outcome = selected.run(world);
  return finish(globals, selected, outcome, *progress, signal);
}

}  // namespace rasupd
