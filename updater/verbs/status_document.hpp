#pragma once
// The status of a machine as bootc's org.containers.bootc/v1 BootcHost document plus `status.rasupd`
// (docs/schema/status.json). Unknown is null, never a guess.

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "deploy/host.hpp"
#include "state/state_dir.hpp"
#include "state/trial.hpp"

namespace rasupd {

struct StatusFacts {
  HostState host;
  std::optional<std::string> boot_id, architecture, role;
  std::vector<Held> held;
  std::optional<JournalEvent> last_attempt, last_finalize;
  std::optional<JournalEvent> last_rollback;  ///< that health decided
  std::optional<TrialRecord> trial;
  unsigned tries_left = 0;  ///< of the trial
  std::vector<std::string> warnings;
  bool booted_only = false;
};

Json status_document(const StatusFacts& facts);
std::string status_text(const StatusFacts& facts);
/// The document of a machine whose state could not be read.
std::string failed_status_document(const Error& error, int exit_code);

}  // namespace rasupd
