#pragma once
// A verb: its options, one call into the program, and its answer for people and for programs. One file per
// verb; cli.cpp lists them all.

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/json.hpp"
#include "base/world.hpp"
#include "image/reference.hpp"

namespace CLI {
class App;
}

namespace rasupd {

struct Globals {
  std::string sysroot = "/", config_root = "/", progress = "auto";
  bool json = false, quiet = false, verbose = false;
  int progress_fd = -1;
};

struct Answer {
  bool changed = false;
  std::shared_ptr<Json> fields;  ///< the verb's own members; null: none
  std::string human;             ///< for standard output, ends with a newline unless empty
  bool document = false;         ///< `fields` is the whole document (status)
  bool json = false;             ///< print JSON although --json was not given (`--format json`)
  int exit_code = 0;
  std::shared_ptr<Error> failure{};  ///< the verb did its work and what it found is a failure: both are told
};

/// What the command line selected.
struct Selected {
  std::string kind = "UsageResult";  ///< of the JSON answer
  std::function<Result<Answer>(const World&)> run;
  std::string sysroot;  ///< overrides Globals::sysroot when not empty (install … ROOT)
  bool needs_sysroot = true;         ///< false: the verb looks at an image or makes ROOT itself
  bool status = false;  ///< failures are answered by status' document too
};

// Every verb adds itself to the program and fills `selected` when it is parsed.
void add_status(CLI::App& app, Selected& selected, const Globals& globals);
void add_upgrade(CLI::App& app, Selected& selected);
void add_switch(CLI::App& app, Selected& selected);
void add_rollback(CLI::App& app, Selected& selected);
void add_unstage(CLI::App& app, Selected& selected);
void add_finalize(CLI::App& app, Selected& selected);
void add_apply(CLI::App& app, Selected& selected);
void add_pin(CLI::App& app, Selected& selected);
void add_prune(CLI::App& app, Selected& selected);
void add_etc(CLI::App& app, Selected& selected);
void add_install(CLI::App& app, Selected& selected);
void add_image(CLI::App& app, Selected& selected);
void add_health(CLI::App& app, Selected& selected);

/// An image as an operator names it; the path of a layout or archive becomes absolute, because an origin outlives
/// the directory the command was given in. `transport` empty: it is part of `text`. Error Usage.
Result<Reference> reference_argument(const std::string& text, const std::string& transport = {});

/// Exit code 77 of `--unchanged-exit-77`.
inline constexpr int kUnchangedExit = 77;

/// The document of a verb's end: answer or error, `apiVersion` and `kind` in front.
std::string result_json(const std::string& kind, const Result<Answer>& outcome, int exit_code);
/// The exit code of an error; `signal` is the one that stopped the program, 0 if none.
int exit_code_of(const Error& error, int signal);

}  // namespace rasupd
