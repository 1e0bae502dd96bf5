#pragma once
// WWW-Authenticate (RFC 9110 section 11.6.1): what a registry wants to see. Pure.

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rasupd {

struct Challenge {
  std::string scheme;                         ///< lower case: "basic", "bearer"
  std::map<std::string, std::string> params;  ///< names in lower case; the first of a repeated name stands
};

/// All challenges of one header value, in order. What cannot be read ends the list: a half-read challenge
/// would be a guess.
std::vector<Challenge> parse_challenges(std::string_view header);

}  // namespace rasupd
