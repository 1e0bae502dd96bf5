#include "health/checks.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/files.hpp"
#include "base/text.hpp"

namespace rasupd {
namespace {

using Steady = std::chrono::steady_clock;  // the wall clock may jump by years on a machine that just booted
using std::chrono::duration_cast;
using std::chrono::milliseconds;

/// Where checks lie, what is read later masks what is read before.
struct Place {
  const char* directory;
  bool required;
};
constexpr Place kRasupd[] = {{"usr/lib/rasupd/health.d/required.d", true},
                             {"etc/rasupd/health.d/required.d", true},
                             {"usr/lib/rasupd/health.d/wanted.d", false},
                             {"etc/rasupd/health.d/wanted.d", false}};
constexpr Place kGreenboot[] = {{"usr/lib/greenboot/check/required.d", true},
                                {"etc/greenboot/check/required.d", true},
                                {"usr/lib/greenboot/check/wanted.d", false},
                                {"etc/greenboot/check/wanted.d", false}};

bool is_executable(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & 0111) != 0;
}

template <std::size_t N>
Result<void> gather(const std::string& config_root, const Place (&places)[N], std::vector<Check>& out) {
  std::map<std::pair<bool, std::string>, std::string> paths;
  for (const Place& place : places) {
    const std::string directory = path_join(config_root, place.directory);
    for (const std::string& name : TRY(list_directory(directory))) {
      paths[{place.required, name}] = path_join(directory, name);
    }
  }
  for (const auto& [key, path] : paths) {
    if (is_executable(path)) out.push_back({key.second, path, key.first});
  }
  return {};
}

/// What a person wants to read of the output: the last line that says anything.
std::string last_line(const Outcome& outcome) {
  for (const std::string* text : {&outcome.err, &outcome.out}) {
    const auto lines = split(*text, '\n');
    for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
      if (!trim(*line).empty()) return printable(trim(*line), 200);
    }
  }
  return "";
}

void judge(CheckResult& result, const Result<Outcome>& done, milliseconds allowed) {
  if (!done) {
    const bool late = result.took >= allowed;
    result.outcome = late ? CheckOutcome::timed_out : CheckOutcome::failed;
    result.detail = late ? fmt::format("still running after {} s: killed", allowed.count() / 1000)
                         : printable(done.error().message);
    return;
  }
  const std::string said = last_line(*done);
  if (done->exit_code == 0) {
    result.outcome = CheckOutcome::passed;
    result.detail = said;
    return;
  }
  result.outcome = CheckOutcome::failed;
  result.detail = fmt::format("exit {}{}{}", done->exit_code, said.empty() ? "" : ": ", said);
}

}  // namespace

Result<std::vector<Check>> find_checks(const std::string& config_root) {
  std::vector<Check> checks;
  TRY(gather(config_root, kRasupd, checks));
  TRY(gather(config_root, kGreenboot, checks));
  std::stable_sort(checks.begin(), checks.end(), [](const Check& a, const Check& b) {
    return a.required != b.required ? a.required : a.name < b.name;
  });
  return checks;
}

Result<std::vector<std::string>> find_scripts(const std::string& config_root, const std::string& directory) {
  std::vector<std::string> out;
  const std::string base = path_join(config_root, directory);
  for (const std::string& name : TRY(list_directory(base))) {
    if (is_executable(path_join(base, name))) out.push_back(path_join(base, name));
  }
  return out;
}

Result<std::vector<CheckResult>> run_checks(const World& world, const std::vector<Check>& checks,
                                            const CheckLimits& limits) {
  std::vector<CheckResult> results;
  const auto end = Steady::now() + limits.together;
  for (const Check& check : checks) {
    CheckResult result{check, CheckOutcome::not_run, milliseconds(0),
                       "the time for all checks was over before"};
    const auto begin = Steady::now();
    const auto allowed = std::min(limits.each, duration_cast<milliseconds>(end - begin));
    if (allowed > milliseconds(0)) {
      world.progress.note(
          fmt::format("{} check {}", check.required ? "required" : "wanted", printable(check.name)));
      const auto done = world.runner.run({check.path}, RunLimits{.timeout = allowed});
      if (!done && done.error().kind == Kind::Cancelled) {
        return fail(Kind::Cancelled, "interrupted while checking: no verdict");
      }
      result.took = duration_cast<milliseconds>(Steady::now() - begin);
      judge(result, done, allowed);
    }
    if (!result.passed()) {
      world.progress.note(fmt::format("{} check {} failed: {}", check.required ? "required" : "wanted",
                                      printable(check.name), result.detail));
    }
    results.push_back(std::move(result));
  }
  return results;
}

bool all_required_passed(const std::vector<CheckResult>& results) {
  return std::all_of(results.begin(), results.end(),
                     [](const CheckResult& r) { return !r.check.required || r.passed(); });
}

std::string failed_names(const std::vector<CheckResult>& results, bool required) {
  std::vector<std::string> names;
  for (const CheckResult& result : results) {
    if (result.check.required == required && !result.passed())
      names.push_back(printable(result.check.name, 80));
  }
  return join(names, ", ");
}

}  // namespace rasupd
