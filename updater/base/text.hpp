#pragma once
// Small pure helpers on text and bytes.

#include <cstddef>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rasupd {

std::string to_hex(std::span<const std::byte> bytes);  ///< lower case
/// Lower-case hex only; nullopt on anything else or an odd length.
std::optional<std::string> from_hex(std::string_view hex);
/// RFC 4648 section 4, strict: padding required, no white space, zero trailing bits.
std::optional<std::string> base64_decode(std::string_view text);
std::string base64_encode(std::string_view bytes);

std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

/// True for well-formed UTF-8 without surrogates or overlong forms.
bool is_utf8(std::string_view text);
/// Text of a foreign origin made safe for a terminal and a journal: control characters and malformed UTF-8
/// become '?', cut at `max` bytes.
std::string printable(std::string_view text, std::size_t max = 400);

/// "1.5 MB" style, powers of 1000 as podman and bootc print them.
std::string human_size(std::uint64_t bytes);
/// RFC 3339 UTC with seconds from seconds since the epoch.
std::string rfc3339(std::int64_t seconds);
std::string rfc3339(std::chrono::system_clock::time_point time);
/// Seconds since the epoch of an RFC 3339 time; nullopt when malformed.
std::optional<std::int64_t> parse_rfc3339(std::string_view text);

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace rasupd
