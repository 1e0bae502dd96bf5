#pragma once
// Fault injection for tests. In builds without RASUPD_FAILPOINTS (every release) a failpoint is nothing.
// RASUPD_FAILPOINT="name=action[,name=action]…" arms them; action: `error`, `nospace`, `kill` (SIGKILL to
// itself), `int` (SIGINT to itself), `term`, `stall` (waits for the file in RASUPD_FAILPOINT_GO to appear),
// `cut` (the machine resets at once without syncing, as in a power cut; sysrq b, needs root of that machine).

#include <string_view>

#include "base/result.hpp"

namespace rasupd {

#ifdef RASUPD_FAILPOINTS
Result<void> failpoint(std::string_view name);
#else
inline Result<void> failpoint(std::string_view) {
  return {};
}
#endif

}  // namespace rasupd
