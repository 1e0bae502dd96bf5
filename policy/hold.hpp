#pragma once
// May this digest and version be taken here? (R16, R17, R70) Pure.

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace rasupd::policy {

struct HoldFacts {
  std::string digest;                                   ///< per-arch digest that is offered
  std::string version;                                  ///< its signed version; empty when it has none
  std::vector<std::string> held_digests, held_reasons;  ///< same order
  std::optional<std::string> floor;                     ///< lowest version of this repository
  bool retry_held = false, allow_downgrade = false;
  std::string on_trial;  ///< digest of a trial that is pending; empty when none
};
/// Error Held with reason "trial", "downgrade" or the one the digest is held for; else the warnings for a person (e.g. no version to compare).
Result<std::vector<std::string>> may_take(const HoldFacts& facts);

}  // namespace rasupd::policy
