#pragma once
// The trial and the last good deployment, as /var remembers them (contract, section 6). The bootloader's counter
// says how often a deployment may still start; these say which one is on trial, since when, and what was good
// before it. A deployment is named CHECKSUM.SERIAL.

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace rasupd {

/// A deployment that boots on trial. Written durably before the bootloader's counter is armed.
struct TrialRecord {
  std::string deployment;           ///< on trial
  std::string digest, version;      ///< of its image; version may be empty
  std::string repository;           ///< name under which the version floor is kept
  std::string previous;             ///< the deployment to come back to
  std::string previous_digest;
  std::string since;                ///< RFC 3339
  unsigned tries = 0;               ///< starts it was given
  unsigned starts = 0;              ///< starts that reached userspace, counted by health
  std::string last_boot_id;         ///< of the last of them, so that one boot counts once
};
/// nullopt when no trial is pending.
Result<std::optional<TrialRecord>> read_trial(const std::string& state_dir);
Result<void> write_trial(const std::string& state_dir, const TrialRecord& record);
/// Durable; false when there was none.
Result<bool> drop_trial(const std::string& state_dir);

/// The last deployment that was marked good.
struct GoodRecord {
  std::string deployment, digest, since;
};
Result<std::optional<GoodRecord>> read_good(const std::string& state_dir);
Result<void> write_good(const std::string& state_dir, const GoodRecord& record);

}  // namespace rasupd
