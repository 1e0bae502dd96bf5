#pragma once
// Settings: rasupd.conf and its drop-ins as one value (contract, section 4). Read-only; changes nothing.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace rasupd {

struct Settings {
  // [trust]
  std::vector<std::string>
      unverified_scopes;  ///< policy scopes that may verify nothing, as they stand in policy.json
  // [import]
  unsigned parallel = 2;  ///< layers at once; 0 never
  // [download]
  unsigned retries = 5;
  unsigned stall_seconds = 30;  ///< no byte for this long is a stall
  // [health]
  unsigned tries = 3;            ///< starts of a deployment on trial, 1 to 9
  unsigned check_timeout = 300;  ///< seconds one check may take
  unsigned deadline = 600;  ///< seconds a start on trial has to reach the checks, and the checks have together
  bool mark_good_external = false;  ///< mark_good=external: passing checks are not enough, `health mark-good` is
  // [space]
  std::uint64_t reserve = 64u << 20;  ///< bytes that stay free in the repository's file system

  std::vector<std::string> warnings;  ///< what a lenient reader passed over, for a person
};

/// /usr/lib/rasupd then /etc/rasupd beneath `config_root`, each rasupd.conf and rasupd.conf.d/*.conf; later
/// wins by key. Strict: an unknown or bad key is Config with file and line. Lenient (status, rollback, …):
/// it becomes a warning and the default stands.
Result<Settings> load_settings(const std::string& config_root, bool strict);

}  // namespace rasupd
