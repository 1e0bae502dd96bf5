#pragma once
// How an UpgradeReport is told: upgrade, switch and install answer alike.

#include "upgrade/upgrade.hpp"
#include "verbs/verb.hpp"

namespace rasupd {

/// `check`: it was asked only; `unchanged_77`: exit 77 when nothing changed (or a check found nothing).
Answer answer_of(const UpgradeReport& report, bool check, bool unchanged_77);

}  // namespace rasupd
