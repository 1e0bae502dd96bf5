#pragma once
// A state file: {"version": 1, KEY: VALUE}, replaced durably as a whole. Private to this room. Errors: Failed; a file
// of a newer format is refused, never guessed (R102).

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/json.hpp"

namespace rasupd {

/// The member `key` of STATE_DIR/`file`, which must have the type of `empty`; `empty` when there is no file.
Result<Json> read_state(const std::string& directory, const char* file, const char* key, Json empty);
/// Makes the directory (0700) when it is missing.
Result<void> write_state(const std::string& directory, const char* file, const char* key, Json value);

}  // namespace rasupd
