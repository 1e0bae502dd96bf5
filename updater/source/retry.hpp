#pragma once
// When to try again: pure functions of the attempt, chance and what the server asked for.

#include <chrono>
#include <optional>
#include <string_view>

namespace rasupd {

/// No wait is longer, whatever a server asks for: an hour of silence is the timer's business.
inline constexpr std::chrono::milliseconds kMaxRetryDelay{60'000};

/// How long to wait before attempt `attempt` + 1 (1 after the first failure). `chance` in [0, 1) spreads a
/// fleet: half to whole of 1 s, 2 s, 4 s, …; a server's Retry-After is kept, with up to a second on top.
std::chrono::milliseconds retry_delay(unsigned attempt, double chance,
                                      std::optional<std::chrono::seconds> retry_after);

/// Retry-After: seconds or an IMF-fixdate (RFC 9110, sections 10.2.3 and 5.6.7); a date gone by is zero.
/// nullopt when it is neither.
std::optional<std::chrono::seconds> parse_retry_after(std::string_view text,
                                                      std::chrono::system_clock::time_point now);

/// 408, 429 and 5xx but 501 and 505, which say "never".
bool is_retryable_status(int status);

}  // namespace rasupd
