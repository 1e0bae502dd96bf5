#pragma once
// The trial's verdict on the running machine (contract, section 6): what this boot means for a trial, whether
// the checks pass, and what follows. Decisions are policy/verdict; this carries them out, each in an order of
// writes of which every prefix is finished by the next boot. All but status() need the running system (Usage
// else).

#include <optional>
#include <string>
#include <vector>

#include "base/world.hpp"
#include "bootloader/bootloader.hpp"
#include "config/settings.hpp"
#include "health/last_run.hpp"
#include "policy/verdict.hpp"
#include "state/state_dir.hpp"
#include "state/trial.hpp"

namespace rasupd {

struct HealthReport {
  bool changed = false;  ///< something was decided: marked good, gone back, a trial cleared
  std::vector<CheckResult> results;
  bool passed = false;           ///< every required check
  std::string verdict = "none";  ///< one word: none, good, waiting, retry, back
  std::string digest;            ///< of what runs
  bool rebooting = false;
  std::vector<std::string> warnings;
};
/// Reconciles the trial with this boot, runs the checks, and acts. Errors: Busy (the lock, after a while) and
/// Cancelled: no verdict, nothing decided; Boot, Failed.
Result<HealthReport> check_health(const World& world, const Settings& settings);

struct Verdict {
  bool changed = false;
  std::string digest;  ///< it is about
  std::string next;    ///< mark_bad(): digest that boots next
  bool rebooting = false;
  std::vector<std::string> warnings;
};
/// What runs is good, whatever its checks say. Idempotent. Error Held (reason `trial`) when something else is
/// on trial.
Result<Verdict> mark_good(const World& world);
/// What is on trial, else what runs, is bad: held, and the next boot is the deployment before it. Error Boot
/// when there is none. `apply`: reboots.
Result<Verdict> mark_bad(const World& world, bool apply);

/// Waits until `settings.deadline` and, when what runs is on trial without a verdict by then, ends this
/// start: counted, told, rebooted. Returns in peace as soon as there is a verdict. A run of the checks gets a
/// deadline of its own.
Result<HealthReport> wait_for_deadline(const World& world, const Settings& settings);

struct HealthStatus {
  std::optional<TrialRecord> trial;
  std::optional<unsigned> tries_left;  ///< nullopt when unknown
  bool on_trial = false;               ///< what runs is
  std::optional<GoodRecord> good;
  std::optional<LastRun> last_run;            ///< in this boot
  std::optional<JournalEvent> last_rollback;  ///< the newest trial ended badly
  std::vector<std::string> warnings;
};
/// No lock, no write. Works on any sysroot.
Result<HealthStatus> health_status(const World& world);

}  // namespace rasupd
