#include "source/retry.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.hpp"

namespace rasupd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

template <class Number>
bool number(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && text.find_first_of("+-") == text.npos;
}

/// "Sun, 06 Nov 1994 08:49:37 GMT". Not strptime(3): it would obey the locale.
std::optional<std::chrono::sys_seconds> parse_http_date(std::string_view text) {
  constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  if (text.size() != 29 || text.substr(3, 2) != ", " || text.substr(25) != " GMT" || text[7] != ' ' ||
      text[11] != ' ' || text[16] != ' ' || text[19] != ':' || text[22] != ':')
    return std::nullopt;
  const auto month = std::find(kMonths.begin(), kMonths.end(), text.substr(8, 3));
  unsigned day = 0, hour = 0, minute = 0, second = 0;
  int year = 0;
  if (month == kMonths.end() || !number(text.substr(5, 2), day) || !number(text.substr(12, 4), year) ||
      !number(text.substr(17, 2), hour) || !number(text.substr(20, 2), minute) ||
      !number(text.substr(23, 2), second))
    return std::nullopt;
  const std::chrono::year_month_day date(
      std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month - kMonths.begin()) + 1),
      std::chrono::day(day));
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         seconds(second);
}

}  // namespace

milliseconds retry_delay(unsigned attempt, double chance, std::optional<seconds> retry_after) {
  if (retry_after) {
    const auto asked = std::min<milliseconds>(*retry_after, kMaxRetryDelay);
    return std::min(kMaxRetryDelay, asked + milliseconds(static_cast<long>(1000 * chance)));
  }
  const unsigned doublings = std::min(attempt == 0 ? 0U : attempt - 1, 6U);
  const auto whole = std::min(kMaxRetryDelay, milliseconds(1000L << doublings));
  return whole / 2 + milliseconds(static_cast<long>(static_cast<double>(whole.count()) / 2 * chance));
}

std::optional<seconds> parse_retry_after(std::string_view text, std::chrono::system_clock::time_point now) {
  text = trim(text);
  long count = 0;
  if (number(text, count)) return seconds(std::min(count, 86400L));
  const auto when = parse_http_date(text);
  if (!when) return std::nullopt;
  const auto wait = std::chrono::ceil<seconds>(*when - now);
  return std::clamp(wait, seconds(0), seconds(86400));
}

bool is_retryable_status(int status) {
  return status == 408 || status == 429 || (status >= 500 && status != 501 && status != 505);
}

}  // namespace rasupd
