#pragma once
// Strict reading of JSON that somebody else wrote: no duplicate keys, no trailing data but white space,
// valid UTF-8, bounded size and depth (RFC 8259 leaves all of these open, and attackers use each).
// The accessors never throw; their errors name the path. Include <nlohmann/json.hpp> in .cpp files only.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace rasupd {

using Json = nlohmann::json;

/// Deeper documents are refused: none of ours needs more than 8 levels.
inline constexpr std::size_t kMaxJsonDepth = 32;

/// The text, null when it is empty: unknown is null, never a guess.
Json json_or_null(const std::string& text);

/// Parses `text`. `what` names the document in errors; `kind` is the kind of every error.
Result<Json> parse_json(std::string_view text, std::string_view what, Kind kind, std::size_t max_bytes);

/// Member `key` of object `node`, of the asked type. Missing or of another type is an error of `kind`.
Result<std::string> json_string(const Json& node, std::string_view key, std::string_view what, Kind kind);
Result<std::uint64_t> json_unsigned(const Json& node, std::string_view key, std::string_view what, Kind kind);
/// The same; a missing member (never a null one) is nullopt.
Result<std::optional<std::string>> json_optional_string(const Json& node, std::string_view key,
                                                        std::string_view what, Kind kind);
/// An object of strings; missing or null is empty (Go writers emit null for an empty map).
Result<std::map<std::string, std::string>> json_string_map(const Json& node, std::string_view key,
                                                           std::string_view what, Kind kind);

}  // namespace rasupd
