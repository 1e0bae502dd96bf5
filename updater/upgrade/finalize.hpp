#pragma once
// The end of an upgrade: what is staged becomes the first boot entry, on trial, while the machine shuts down. The
// shutdown unit runs it (examples/units/rasupd-finalize.service); ADR 0005.

#include <optional>
#include <string>
#include <vector>

#include "base/world.hpp"
#include "config/settings.hpp"
#include "deploy/deploy.hpp"
#include "policy/trial.hpp"

namespace rasupd {

struct FinalizeReport {
  bool done = false;   ///< false: nothing was staged, or it is held back
  std::string digest;  ///< of the image that boots next
  unsigned tries = 0;  ///< starts of its trial; 0: no trial
  std::vector<EtcNote> etc_notes;
  std::vector<std::string> warnings;
};

/// Waits a while for the lock (nobody can retry at shutdown), merges /etc, arms the trial, turns the entries. The
/// outcome is in the journal before this returns; a failure leaves the old default and the stage held back. Errors:
/// Busy, Boot, NoSpace, Unsuitable (/etc), Failed.
Result<FinalizeReport> finalize(const World& world, const Settings& settings);

/// Would what is deployed now boot on trial? For upgrade's answer; the decision is made at finalize.
Result<policy::TrialPlan> trial_plan(const HostState& host, const std::string& state_dir, unsigned tries);

/// A finalize that began in an earlier boot and told no end (power cut, killed): recorded as what came of it. Called at
/// boot. Returns the error it recorded; empty when there was nothing to record or it did succeed.
Result<std::string> settle_interrupted_finalize(const World& world, const HostState& host,
                                                const std::string& state_dir);

/// True when a unit will run finalize() at shutdown; where the image ships none, one is made in /run and started.
/// Error Failed when that is not possible: the stage would be lost.
Result<void> ensure_finalizer(const World& world);

}  // namespace rasupd
