#pragma once
// The state directory: what rasupd remembers about this machine (contract, section 4). It belongs to the
// sysroot, lies in /var, and never rolls back with the operating system. The only place under /var that an
// upgrade writes. Every file carries a format version; a newer one than ours is refused, never guessed
// (R102).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace rasupd {

/// Where the state of `stateroot` under `sysroot` lies: /var/lib/rasupd for the running system, whose /var
/// may be a file system of its own, else beneath the stateroot.
std::string state_directory(const std::string& sysroot, bool running, const std::string& stateroot);

/// One finished attempt or finalize, as the journal keeps it.
struct JournalEvent {
  std::string event;  ///< "attempt", "finalize", "health", "mark-good", "rollback" (of a trial)
  std::string time;   ///< RFC 3339
  std::string verb;
  std::string result;  ///< "ok", "unchanged", "failed"
  std::string digest;  ///< per-arch digest it was about; may be empty
  std::string error;   ///< "Kind: message" or empty
};
/// Appends one line and fsyncs it; creates the directory (0700). Keeps the file under kMaxJournal.
Result<void> append_journal(const std::string& directory, const JournalEvent& event);
/// The newest event of that name; nullopt when there is none. A torn last line (power cut) is skipped.
Result<std::optional<JournalEvent>> last_event(const std::string& directory, const std::string& event);
/// The newest event of any of the names: by the order of the lines, because a clock may jump.
Result<std::optional<JournalEvent>> last_event_of(const std::string& directory,
                                                  const std::vector<std::string>& events);

/// A digest this machine does not take again by itself.
struct Held {
  std::string digest, reason, since;
};
Result<std::vector<Held>> read_held(const std::string& directory);
/// Adds or replaces by digest; durable.
Result<void> hold(const std::string& directory, const Held& held);
/// Removes a digest; nothing is written when it is not held. Returns whether it was.
Result<bool> lift(const std::string& directory, const std::string& digest);

/// The lowest version that may be taken from a repository ("host/repo" or a path), nullopt when none is
/// known.
Result<std::optional<std::string>> read_floor(const std::string& directory, const std::string& repository);
Result<void> write_floor(const std::string& directory, const std::string& repository,
                         const std::string& version);

/// The role the machine has, by its marker role.<name>; nullopt when unprovisioned.
Result<std::optional<std::string>> read_role(const std::string& directory);

}  // namespace rasupd
