#pragma once
// What the deploy transaction's files share: the locked sysroot, the state read under the lock, the
// bootloader. Private to this room.

#include <memory>
#include <string>
#include <vector>

#include "bootloader/bootloader.hpp"
#include "deploy/deploy.hpp"
#include "fence/sysroot.hpp"

namespace rasupd {

struct LockedHost::Body {
  World world;
  Sysroot sysroot;
  HostState state;
  std::unique_ptr<boot::Bootloader> bootloader;

  /// Absolute path of something relative to the sysroot.
  std::string path(const std::string& relative) const;
  Result<void> reload();
};

/// Error Boot when /boot is not mounted or its entries are gone while deployments exist (R123).
Result<void> refuse_without_boot(const HostState& state);

/// Makes `directories` the boot entries, in this order, and proves it (R124): the former order comes back
/// when the read-back fails. A staged deployment is dropped unless it is the first of them. Nothing is
/// cleaned up. With `tries` the first boots on trial with so many starts; else a trial of what is first and stays so
/// goes on, and any other ends.
/// Returns warnings. Error Boot.
Result<std::vector<std::string>> switch_entries(LockedHost::Body& body,
                                                const std::vector<std::string>& directories, unsigned tries = 0);

/// The menu that switch_entries() will bring about, told before it does: boot entry by boot entry as libostree will
/// write them.
Result<boot::Next> next_menu(const LockedHost::Body& body, const std::vector<std::string>& directories);

/// Brings the bootloader in step with the entries, with the recorded trial of the first one armed, where a power cut
/// or another tool left it behind. Nothing as a rule. Error Boot, NoSpace.
Result<void> follow_entries(LockedHost::Body& body);

/// Deploys at once: checkout, own /etc merge with the current deployment, kernels, entries; read back.
Result<DeployResult> deploy_now(LockedHost::Body& body, const TreeRequest& tree, const TrialRequest& trial = {});

/// Builds the merged /etc of the deployment in `directory` beside the image's copy and swaps the two. The
/// current deployment's /etc is the local side; without one the image's /etc stays. Error Unsuitable on
/// conflicts.
Result<std::vector<EtcNote>> merge_etc(LockedHost::Body& body, const std::string& directory);

/// Three-way difference of kargs.d against the current deployment, plus what `what` adds and ensures.
Result<std::vector<std::string>> kargs_for(LockedHost::Body& body, const NewDeployment& what);

}  // namespace rasupd
