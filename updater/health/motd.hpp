#pragma once
// What a person who logs in reads after a trial ended badly (R78). pam_motd(8) shows the files in
// /run/motd.d.

#include <optional>
#include <string>

#include "state/state_dir.hpp"

namespace rasupd {

/// The text for the newest verdict of the journal ("rollback" or "mark-good"); empty when there is nothing to
/// tell.
std::string motd_text(const std::optional<JournalEvent>& last_verdict);

}  // namespace rasupd
