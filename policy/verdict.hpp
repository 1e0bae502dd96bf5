#pragma once
// What to do about a trial: when a machine has booted, and when its health checks have ended (contract,
// section 6). Pure: tables over facts. Deployments are named CHECKSUM.SERIAL. In doubt a trial is kept, never
// cleared (R81), and without a trial nothing reboots and nothing is held (R67, R71).

#include <optional>
#include <string>

namespace rasupd::policy {

// Why a digest is held by a trial's end. A manual rollback's "rolled-back" is none of them.
inline constexpr const char* kBootFailed = "boot-failed";      ///< no start of it reached a verdict
inline constexpr const char* kHealthFailed = "health-failed";  ///< a required check failed at the last start
inline constexpr const char* kMarkedBad = "marked-bad";        ///< somebody said so
/// True for these three.
bool ends_a_trial(const std::string& held_reason);

/// What the bootloader can do (boot::Counting).
enum class Counts { nothing, one_start, tries };

struct PendingTrial {
  std::string deployment;
  unsigned tries = 0, starts = 0;  ///< starts that reached userspace, without this one unless `counted`
  bool counted = false;            ///< this very boot is among `starts`
  std::string held;                ///< reason its digest is held for; empty when it is not
};
struct CounterFacts {
  std::string deployment;
  unsigned left = 0;
};
struct BootFacts {
  bool readable = true;             ///< the record, the entries and the good one could be read
  std::optional<PendingTrial> trial;  ///< on record in /var
  std::string booted, first;        ///< what runs, what boots next; empty when unknown
  std::string good;                 ///< the last one that was marked good; empty when none
  bool counter_readable = true;
  std::optional<CounterFacts> counter;  ///< on the bootloader's medium
  Counts counts = Counts::nothing;
  bool in_step = true;  ///< what the bootloader reads says what the entries say
};

enum class AtBoot {
  nothing,
  keep,         ///< a trial is pending and this boot says nothing about it, or nothing certain
  clear,        ///< a counter without a trial: ended on the medium
  interrupted,  ///< recorded, but the switch never happened: forgotten, told as a failed finalize
  forget,       ///< recorded, started, and given up by somebody's own switch: forgotten
  on_trial,     ///< this start is one of the trial's
  fell_back,    ///< the trial failed and the machine is back
  go_back,      ///< a verdict against what runs was interrupted: finished
  finish_good,  ///< a verdict for it was interrupted: finished
};
struct BootVerdict {
  AtBoot action = AtBoot::nothing;
  bool count = false;  ///< on_trial: this start is to be counted
  std::string
      reason;  ///< fell_back, go_back: what the digest is held for; keep: why, for a person; else empty
};
BootVerdict at_boot(const BootFacts& facts);

struct CheckFacts {
  bool readable = true;         ///< as in BootFacts
  bool on_trial = false;        ///< what runs is on trial
  bool other_on_trial = false;  ///< a trial is pending for what does not run
  bool good_already = false;    ///< what runs is the last one that was marked good
  bool boots_next = true;       ///< what runs is the first entry
  bool passed = false;          ///< every required check
  bool external = false;        ///< mark_good=external
  Counts counts = Counts::nothing;
  std::optional<unsigned> left;    ///< on the medium; nullopt: none or unreadable
  unsigned tries = 0, starts = 0;  ///< with this one
};
enum class AfterChecks {
  nothing,
  warn,  ///< failed without a trial: told, nothing else
  mark_good,
  wait,     ///< passed, and the verdict is somebody else's
  reboot,   ///< failed; another start of the same
  go_back,  ///< failed at the last start
};
AfterChecks after_checks(const CheckFacts& facts);

}  // namespace rasupd::policy
