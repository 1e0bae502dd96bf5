#pragma once
// The three-way merge of /etc: one plan, made from three directories, printed for a dry run and carried out
// for real (R31, R32, R111, R121, R122; docs/etc-merge.md has the matrix).
//   base    the previous deployment's pristine usr/etc
//   local   the previous deployment's etc, with the machine's edits
//   vendor  the new deployment's usr/etc
// Unit is one attribute of one path: content (or link target, or kind), mode, owner and each xattr merge on
// their own; a local change wins over the vendor's, an unchanged side takes the other's.
// No path ever leaves a directory descriptor, and none goes through a symlink.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace rasupd {

enum class FileKind { none, file, directory, symlink, fifo, socket, device };
std::string_view file_kind_name(FileKind kind);

struct EtcConflict {
  std::string path;  ///< relative to /etc, raw bytes: print it through printable()
  FileKind local, vendor;
  std::string why;  ///< one sentence for a person
};
struct EtcNote {
  std::string path;
  std::string what;  ///< e.g. "kept the local file; the image changed its default too"
};
/// What the machine changed against `base`, as `etc diff` prints it.
struct EtcChange {
  char code;  ///< 'A' added, 'M' modified, 'D' removed — as `ostree admin config-diff`
  std::string path;
  std::string
      detail;  ///< "content", "mode 0644 → 0600", "owner", "xattr user.x", "file → symlink", comma-joined
};

struct EtcAction;  // etc_action.hpp

struct EtcPlan {
  std::vector<EtcChange> changes;      ///< local against base
  std::vector<EtcConflict> conflicts;  ///< what cannot be merged; not empty → apply refuses
  std::vector<EtcNote> notes;          ///< both sides changed, local kept; dropped specials
  std::vector<EtcAction> actions;      ///< what turns a copy of `vendor` into the merged /etc
  EtcPlan();
  ~EtcPlan();
  EtcPlan(EtcPlan&&) noexcept;
  EtcPlan& operator=(EtcPlan&&) noexcept;
};

/// Reads the three trees (descriptors of directories); writes nothing. Files that vanish while reading count
/// as deleted locally.
Result<EtcPlan> plan_etc_merge(int base, int local, int vendor);

/// Makes `target` (an empty directory) the merged /etc: a full copy of `vendor` (no hardlinks), then the
/// plan's actions, which copy from `local`. Syncs nothing: the caller owns the commit point. A local file
/// that vanished since planning is skipped and noted: the notes returned are those, on top of the plan's own.
/// Errors: Unsuitable when the plan has conflicts; NoSpace; Failed, with `target` half made.
Result<std::vector<EtcNote>> apply_etc_merge(const EtcPlan& plan, int local, int vendor, int target);

/// Only local against base, as `etc diff` needs it.
Result<std::vector<EtcChange>> diff_etc(int base, int local);

}  // namespace rasupd
