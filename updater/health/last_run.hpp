#pragma once
// /run/rasupd/health: how the last health check of this boot went. Volatile, for `health status` and for the
// deadline.

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "health/checks.hpp"

namespace rasupd {

/// How far a run of the checks came.
enum class RunState {
  running,
  passed,
  failed,
  no_verdict,  ///< it could not judge: the lock was held, or it was interrupted
};
std::string_view run_state_name(RunState state);
/// A result as answers and the file tell it.
Json check_json(const CheckResult& result);

struct LastRun {
  RunState state = RunState::running;
  std::string time;   ///< RFC 3339, of its start
  double uptime = 0;  ///< seconds of this boot at its start
  std::vector<CheckResult> results;
};
/// nullopt when there was none in this boot. Error Failed when the file is damaged.
Result<std::optional<LastRun>> read_last_run(const std::string& run_dir);
Result<void> write_last_run(const std::string& run_dir, const LastRun& run);

/// Where these volatile files lie on the running system.
inline constexpr const char* kRunDirectory = "/run/rasupd";
/// Seconds since the first process started, sleep included: since boot, in a container since its own.
Result<double> since_start();

}  // namespace rasupd
