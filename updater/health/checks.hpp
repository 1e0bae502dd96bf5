#pragma once
// Health checks: executables that say by their exit code whether this machine does its work (contract,
// section 6). They are the image's and the operator's; greenboot's directories are read as well, so that its
// checks run unchanged.

#include <chrono>
#include <string>
#include <vector>

#include "base/world.hpp"

namespace rasupd {

struct Check {
  std::string name;       ///< file name; they run in its order
  std::string path;       ///< absolute
  bool required = false;  ///< else wanted: a failure is a warning
};
/// Those beneath `config_root`. A name in /etc masks the same name in /usr, also when what is there is no
/// executable (a link to /dev/null). Required ones first. Error Failed when a directory cannot be read.
Result<std::vector<Check>> find_checks(const std::string& config_root);
/// Executables of one directory beneath `config_root`, in the order of their names (greenboot's red.d and
/// green.d).
Result<std::vector<std::string>> find_scripts(const std::string& config_root, const std::string& directory);

enum class CheckOutcome { passed, failed, timed_out, not_run };
struct CheckResult {
  Check check;
  CheckOutcome outcome = CheckOutcome::not_run;
  std::chrono::milliseconds took{0};
  std::string detail;  ///< exit code and last line said, made safe; empty when it passed in silence

  bool passed() const { return outcome == CheckOutcome::passed; }
};
struct CheckLimits {
  std::chrono::milliseconds each{300'000}, together{600'000};
};
/// Runs them one after another; what has no time left counts as failed. Error Cancelled when stopped: no
/// verdict.
Result<std::vector<CheckResult>> run_checks(const World& world, const std::vector<Check>& checks,
                                            const CheckLimits& limits);

/// True when every required one passed; none at all passes (R74).
bool all_required_passed(const std::vector<CheckResult>& results);
/// "10-net, 20-disk": the failed ones, required or wanted; empty when none failed.
std::string failed_names(const std::vector<CheckResult>& results, bool required);

}  // namespace rasupd
