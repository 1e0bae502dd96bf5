#include "health/last_run.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace rasupd {
namespace {

constexpr const char* kFile = "health";
constexpr std::size_t kMaxBytes = 4u << 20;
constexpr std::string_view kStates[] = {"running", "passed", "failed", "no-verdict"};
constexpr std::string_view kOutcomes[] = {"passed", "failed", "timed-out", "not-run"};

template <class Enum, std::size_t N>
Result<Enum> named(const std::string& name, const std::string_view (&names)[N]) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return fail(Kind::Failed, "unknown word \"" + name + "\" in the record of the last health check");
}

Result<CheckResult> result_of(const Json& item) {
  CheckResult result;
  result.check.name = TRY(json_string(item, "name", kFile, Kind::Failed));
  result.check.path = TRY(json_string(item, "path", kFile, Kind::Failed));
  result.check.required = TRY(json_string(item, "kind", kFile, Kind::Failed)) == "required";
  const std::string outcome = TRY(json_string(item, "result", kFile, Kind::Failed));
  result.outcome = TRY(named<CheckOutcome>(outcome, kOutcomes));
  const auto took = TRY(json_unsigned(item, "milliseconds", kFile, Kind::Failed));
  result.took = std::chrono::milliseconds(took);
  result.detail = TRY(json_string(item, "detail", kFile, Kind::Failed));
  return result;
}

}  // namespace

std::string_view run_state_name(RunState state) {
  return kStates[static_cast<std::size_t>(state)];
}

Json check_json(const CheckResult& result) {
  return {{"name", result.check.name},
          {"path", result.check.path},
          {"kind", result.check.required ? "required" : "wanted"},
          {"result", kOutcomes[static_cast<std::size_t>(result.outcome)]},
          {"milliseconds", static_cast<std::uint64_t>(result.took.count())},
          {"detail", result.detail}};
}

Result<std::optional<LastRun>> read_last_run(const std::string& run_dir) {
  const auto text = TRY(read_file(path_join(run_dir, kFile), kMaxBytes));
  if (!text) return std::optional<LastRun>{};
  const Json json = TRY(parse_json(*text, kFile, Kind::Failed, kMaxBytes));
  LastRun run;
  const std::string state = TRY(json_string(json, "state", kFile, Kind::Failed));
  run.state = TRY(named<RunState>(state, kStates));
  run.time = TRY(json_string(json, "time", kFile, Kind::Failed));
  run.uptime = static_cast<double>(TRY(json_unsigned(json, "uptime", kFile, Kind::Failed)));
  if (!json.contains("checks") || !json["checks"].is_array())
    return fail(Kind::Failed, "no checks in " + *text);
  for (const Json& item : json["checks"]) run.results.push_back(TRY(result_of(item)));
  return run;
}

Result<void> write_last_run(const std::string& run_dir, const LastRun& run) {
  TRY(make_directories(run_dir));
  Json checks = Json::array();
  for (const CheckResult& result : run.results) checks.push_back(check_json(result));
  const Json json = {{"state", run_state_name(run.state)},
                     {"time", run.time},
                     {"uptime", static_cast<std::uint64_t>(run.uptime)},
                     {"checks", std::move(checks)}};
  return write_file_durably(path_join(run_dir, kFile),
                            json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n", 0644);
}

Result<double> since_start() {
  timespec now{};
  if (::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return fail_errno(errno, "reading CLOCK_BOOTTIME");
  // proc_pid_stat(5), field 22: when process 1 started, in clock ticks of the same clock. The name may hold
  // blanks.
  const auto stat = TRY(read_file("/proc/1/stat", 4096));
  const auto fields = split(stat.value_or("").substr(stat.value_or("").rfind(')') + 1), ' ');
  constexpr std::size_t kStart = 22 - 2;  // counted from the blank behind the name
  double ticks = 0;
  if (fields.size() > kStart) ticks = std::strtod(fields[kStart].c_str(), nullptr);
  const double started = ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9 - started;
}

}  // namespace rasupd
