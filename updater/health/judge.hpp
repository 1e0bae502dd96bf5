#pragma once
// From checks to consequences. Private to this room.

#include "health/situation.hpp"

namespace rasupd {

/// What follows from the checks' outcome (policy::after_checks), carried out under the lock with everything
/// read anew. `why`: which checks failed. Sets verdict, changed, warnings. Does not reboot; returns whether
/// that is to be asked.
Result<bool> act_on(const World& world, const Settings& settings, bool passed, const std::string& reason,
                    const std::string& why, HealthReport& report);
/// Asks for the reboot and says so in `report`. Error Failed with `changed`.
Result<void> reboot_for(const World& world, HealthReport& report);

}  // namespace rasupd
