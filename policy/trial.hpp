#pragma once
// Does a new deployment boot on trial? (contract, section 6) Pure.

#include <optional>
#include <string>
#include <vector>

namespace rasupd::policy {

struct TrialFacts {
  std::optional<std::string> good;      ///< deployment that was last marked good
  std::vector<std::string> bootable;    ///< deployments that have a boot entry today, the current one first
  unsigned tries = 0;                   ///< starts that the settings give
};
struct TrialPlan {
  unsigned tries = 0;    ///< 0: boots without a trial
  std::string previous;  ///< deployment to come back to; the second entry. Empty: there is none
  std::string warning;   ///< why there is no trial, for a person
};
/// Armed only when another deployment was marked good and can still be booted: a machine must have somewhere to go.
TrialPlan plan_trial(const TrialFacts& facts);

}  // namespace rasupd::policy
