#pragma once
// Situation: everything a verdict needs to know, read once under the lock or without it; and the acts that
// follow from one. Private to this room.

#include <string>
#include <vector>

#include "deploy/deploy.hpp"
#include "deploy/trial.hpp"
#include "health/health.hpp"

namespace rasupd {

struct Situation {
  std::string state_dir, boot_id;
  std::string booted, first;  ///< CHECKSUM.SERIAL; empty when unknown
  std::string digest;         ///< of the booted image; empty when it has none
  std::optional<TrialRecord> record;
  std::optional<GoodRecord> good;
  std::string held;  ///< reason for which the digest on trial is held
  std::optional<boot::Trial> counter;
  boot::Counting counting = boot::Counting::none;
  bool readable = true, counter_readable = true, in_step = true;
  std::vector<std::string> warnings;  ///< what could not be read

  bool on_trial() const { return record && record->deployment == booted; }
};
/// Reads it. What cannot be read is a warning and makes it not `readable`, never an error.
Situation look(const World& world, const HostState& host);
policy::BootFacts boot_facts(const Situation& now);
policy::CheckFacts check_facts(const Situation& now, bool passed, bool external);

/// Moves `more` to the end of `to`.
void append(std::vector<std::string>& to, std::vector<std::string> more);

struct Reconciled {
  Situation now;  ///< afterwards
  policy::BootVerdict verdict;
  bool changed = false;
  bool reboot = false;  ///< an interrupted way back was finished
  std::vector<std::string> warnings;
};
/// What this boot means for the trial, carried out.
Result<Reconciled> reconcile(const World& world, LockedHost& host);

/// Makes what runs good and ends its trial: good, floor, journal, bootloader, record. Idempotent from any
/// prefix. `verb`: for the journal. Returns warnings.
Result<std::vector<std::string>> make_good(const World& world, LockedHost& host, const Situation& now,
                                           const std::string& verb);
/// Finishes it for the deployment on record, which was recorded as good but is perhaps not what runs.
Result<std::vector<std::string>> finish_good(const World& world, LockedHost& host, const Situation& now);

/// What a verdict goes against, and where it comes back to (when that can still boot).
struct Bad {
  std::string deployment, digest, previous;
};
Bad bad_of(const Situation& now);  ///< what is on record
/// Its digest held for `reason`, the previous deployment first, journal, counter, record. Idempotent from any
/// prefix. `why`: for a person. Returns warnings. Error Boot when there is nothing to go back to.
Result<std::vector<std::string>> give_up(const World& world, LockedHost& host, const Situation& now,
                                         const Bad& bad, const std::string& reason, const std::string& why);

JournalEvent health_event(const World& world, const std::string& event, const std::string& verb,
                          const std::string& result, const std::string& digest, const std::string& error);
/// Appends it unless it was told already since the last finalize: a repeated step is told once.
Result<void> tell_verdict(const std::string& state_dir, const JournalEvent& event);

/// /run/motd.d/50-rasupd says so while the newest trial ended badly and nothing was marked good since; else
/// it is removed. Failing to is a note.
void refresh_motd(const World& world, const std::string& state_dir);

/// One line to the system's journal under `message_id` (systemd's native protocol), so that it can be
/// searched for; lost where there is no journal.
void announce(const char* message_id, const std::string& text);
inline constexpr const char* kAnnounceGood = "fef5b8234f634f4f97a37d2465e87a83";
inline constexpr const char* kAnnounceRollback = "f29a24160a81427cbe2d634ed6395884";
inline constexpr const char* kAnnounceFailed = "86fdfc98707a45c2898040f167203707";

}  // namespace rasupd
