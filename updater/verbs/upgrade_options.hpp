#pragma once
// The flags that upgrade and switch share, bootc's spelling included.

#include <string>

#include "upgrade/upgrade.hpp"
#include "verbs/verb.hpp"

namespace rasupd {

struct UpgradeOptions {
  UpgradeRequest request;
  std::string digest, tag, soft_reboot;
  bool unchanged_77 = false, retain = false, enforce = false;
};
void add_upgrade_options(CLI::App& verb, UpgradeOptions& options);
/// Checks what the parser cannot, runs and answers. Notes of the upgrade go to Progress.
Result<Answer> run_upgrade(const World& world, const UpgradeOptions& options);

}  // namespace rasupd
