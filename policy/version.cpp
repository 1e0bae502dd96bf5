#include "policy/version.hpp"

#include <cstdint>
#include <string>

namespace rasupd::policy {
namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}

/// deb-version(7): "~" before the end of a part, the end before letters, letters before everything else.
int weight(std::string_view text, std::size_t at) {
  if (at >= text.size() || digit(text[at])) return 0;
  const char c = text[at];
  if (c == '~') return -1;
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return c;
  return static_cast<unsigned char>(c) + 256;
}

std::string_view take_number(std::string_view text, std::size_t& at) {
  while (at < text.size() && text[at] == '0') ++at;
  const std::size_t start = at;
  while (at < text.size() && digit(text[at])) ++at;
  return text.substr(start, at - start);
}

std::strong_ordering compare_part(std::string_view a, std::string_view b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    while ((i < a.size() && !digit(a[i])) || (j < b.size() && !digit(b[j]))) {
      const int left = weight(a, i), right = weight(b, j);
      if (left != right) return left <=> right;
      ++i;
      ++j;
    }
    const auto left = take_number(a, i), right = take_number(b, j);
    if (left.size() != right.size()) return left.size() <=> right.size();
    if (const int order = left.compare(right); order != 0) return order <=> 0;
  }
  return std::strong_ordering::equal;
}

struct Parts {
  std::string_view epoch = "0", upstream, revision;
};

Parts parts_of(std::string_view version) {
  Parts parts;
  if (const auto colon = version.find(':'); colon != std::string_view::npos) {
    parts.epoch = version.substr(0, colon);
    version.remove_prefix(colon + 1);
  }
  const auto dash = version.rfind('-');
  parts.upstream = version.substr(0, dash);
  if (dash != std::string_view::npos) parts.revision = version.substr(dash + 1);
  return parts;
}

}  // namespace

std::strong_ordering compare_versions(std::string_view a, std::string_view b) {
  const Parts left = parts_of(a), right = parts_of(b);
  if (const auto order = compare_part(left.epoch, right.epoch); order != 0) return order;
  if (const auto order = compare_part(left.upstream, right.upstream); order != 0) return order;
  return compare_part(left.revision, right.revision);
}

}  // namespace rasupd::policy
