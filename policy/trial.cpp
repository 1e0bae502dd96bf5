#include "policy/trial.hpp"

#include <algorithm>

namespace rasupd::policy {

TrialPlan plan_trial(const TrialFacts& facts) {
  TrialPlan plan;
  if (!facts.bootable.empty()) plan.previous = facts.bootable.front();
  if (!facts.good) {
    plan.warning = "no deployment was marked good on this machine yet, so the new one boots without a trial: it does "
                   "not come back by itself (`rasupd health mark-good` while the running one is fine)";
    return plan;
  }
  if (std::find(facts.bootable.begin(), facts.bootable.end(), *facts.good) == facts.bootable.end()) {
    plan.warning = "the deployment that was last marked good has no boot entry any more, so the new one boots without "
                   "a trial";
    return plan;
  }
  plan.previous = *facts.good;
  plan.tries = facts.tries;
  return plan;
}

}  // namespace rasupd::policy
