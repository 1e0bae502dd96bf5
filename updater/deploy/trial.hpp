#pragma once
// The trial as the deploy transaction sees it: what is on trial, where it would come back to, and how a trial ends.
// The decision whether it ends well is the health room's. Functions with LockedHost need the lock.

#include <optional>
#include <string>

#include "bootloader/bootloader.hpp"
#include "deploy/deploy.hpp"
#include "state/trial.hpp"

namespace rasupd {

/// CHECKSUM.SERIAL: how a deployment is named on the bootloader's medium and in the state directory.
std::string deployment_id(const Deployment& deployment);

/// Ends the trial on the bootloader's medium, durably: what is first boots without a counter. Idempotent.
Result<void> end_trial(LockedHost& host);
/// Makes the deployment `id` the first entry, without a trial; every other keeps its place, a staged one is dropped.
/// Error Boot when there is no such entry. Already first: the bootloader's files are brought in step with the entries.
Result<void> boot_from(LockedHost& host, const std::string& id);

}  // namespace rasupd
