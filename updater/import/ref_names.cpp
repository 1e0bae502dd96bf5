#include <fmt/format.h>

#include <cctype>

#include "base/text.hpp"
#include "import/import.hpp"

namespace rasupd {
namespace {

bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

// ostree-ext's scheme, so that either program finds the other's refs: letters, digits and "-" stay, "/" stays
// after one of the former (never at the end), "_" doubles, everything else is _HEX_ of its code point.
// Digests and references are ASCII; a byte stands for a code point here.
std::string escape_ref(std::string_view text) {
  std::string out;
  bool after_plain = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_plain(c) || c == '-' || (c == '/' && after_plain && i + 1 < text.size())) {
      out += c;
    } else if (c == '_') {
      out += "__";
    } else {
      out += fmt::format("_{:02X}_", static_cast<unsigned char>(c));
    }
    after_plain = is_plain(c);
  }
  return out;
}

std::string unescape_ref(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto end = text.front() == '_' ? text.find('_', 1) : std::string_view::npos;
    if (end == std::string_view::npos) {
      out += text.front();
      text.remove_prefix(1);
      continue;
    }
    std::string hex(text.substr(1, end - 1));
    for (char& c : hex) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto byte = from_hex(hex);
    out += end == 1 ? "_" : byte.value_or(std::string(text.substr(0, end + 1)));
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace rasupd
