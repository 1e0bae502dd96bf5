#pragma once
// An attempt: one run of a verb that changes what boots next, recorded in the journal whatever came of it.

#include <string>

#include "base/world.hpp"
#include "deploy/host.hpp"

namespace rasupd {

/// Records the attempt's end durably. Failing to write is a note to the person, never a failure of the
/// attempt. Usage, Busy and Cancelled attempts are not recorded: they say nothing about the machine.
void record_attempt(const World& world, const std::string& state_dir, const std::string& verb,
                    const std::string& digest, bool changed, const Error* error);

/// The state directory of this host's current stateroot ("default" on a fresh sysroot).
std::string state_directory_of(const World& world, const HostState& host);

/// Makes /run/reboot-required say what is true now (R95). Only on the running system.
void refresh_reboot_required(const World& world, const HostState& host);

/// Asks the init system to reboot. Error Failed with `changed` set.
Result<void> request_reboot(const World& world);

/// Error Usage unless `host` is the running system.
Result<void> require_running(const HostState& host, const std::string& what);

}  // namespace rasupd
