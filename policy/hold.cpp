#include "policy/hold.hpp"

#include <fmt/format.h>

#include "policy/version.hpp"

namespace rasupd::policy {

Result<std::vector<std::string>> may_take(const HoldFacts& facts) {
  if (!facts.on_trial.empty()) {
    Error error{Kind::Held, facts.on_trial + " is on trial: nothing is staged before the verdict",
                "`rasupd health status` shows it; `rasupd health mark-good` or `mark-bad` ends it"};
    error.reason = "trial";
    return fail(std::move(error));
  }
  for (std::size_t i = 0; i < facts.held_digests.size(); ++i) {
    if (facts.held_digests[i] != facts.digest || facts.retry_held) continue;
    Error error{Kind::Held,
                fmt::format("{} is held on this machine: {}", facts.digest, facts.held_reasons[i]),
                "publish another image, or give --retry-held to try this one again"};
    error.reason = facts.held_reasons[i];
    return fail(std::move(error));
  }
  std::vector<std::string> warnings;
  if (facts.version.empty()) {
    warnings.push_back("the image has no org.opencontainers.image.version: a downgrade could not be noticed");
  } else if (facts.floor && compare_versions(facts.version, *facts.floor) < 0 && !facts.allow_downgrade) {
    Error error{Kind::Held,
                fmt::format("version {} is older than {}, the lowest this machine takes from there",
                            facts.version, *facts.floor),
                "give --allow-downgrade if the older image is meant; `rasupd rollback` needs no permission"};
    error.reason = "downgrade";
    return fail(std::move(error));
  }
  return warnings;
}

}  // namespace rasupd::policy
