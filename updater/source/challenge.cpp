#include "source/challenge.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

namespace rasupd {
namespace {

/// RFC 9110 section 5.6.2.
bool is_token_char(unsigned char c) {
  return std::isalnum(c) ||
         std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool at_end() const { return at_ >= text_.size(); }
  bool sees(char c) const { return !at_end() && text_[at_] == c; }
  bool skip_spaces() { return skip(" \t"); }
  void skip_commas() { skip(" \t,"); }
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string token() {
    const std::size_t start = at_;
    while (!at_end() && is_token_char(static_cast<unsigned char>(text_[at_]))) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }
  /// A quoted-string or a token; nullopt when the quote is never closed or there is nothing.
  std::optional<std::string> value() {
    if (!take('"')) {
      std::string plain = token();
      if (plain.empty()) return std::nullopt;
      return plain;
    }
    std::string out;
    while (!at_end()) {
      char c = text_[at_++];
      if (c == '"') return out;
      if (c == '\\' && !at_end()) c = text_[at_++];
      out += c;
    }
    return std::nullopt;
  }
  /// token68 of e.g. Negotiate: only passed over.
  void skip_token68() {
    while (!at_end() && text_[at_] != ',' && text_[at_] != ' ') ++at_;
  }
  std::size_t position() const { return at_; }
  void rewind(std::size_t position) { at_ = position; }

 private:
  bool skip(std::string_view set) {
    const std::size_t start = at_;
    while (!at_end() && set.find(text_[at_]) != std::string_view::npos) ++at_;
    return at_ > start;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// The parameters of one challenge. A word without "=" begins the next challenge and is left in place.
bool read_params(Scanner& scan, Challenge& challenge) {
  for (;;) {
    scan.skip_commas();
    const std::size_t before = scan.position();
    const std::string name = scan.token();
    if (name.empty()) return scan.at_end();
    scan.skip_spaces();
    if (!scan.take('=')) {
      scan.rewind(before);
      return true;
    }
    scan.skip_spaces();
    const bool quoted = scan.sees('"');
    auto value = scan.value();
    if (!value) {
      if (quoted || !challenge.params.empty()) return false;
      scan.rewind(before);
      scan.skip_token68();
      continue;
    }
    challenge.params.emplace(lower(name), std::move(*value));
  }
}

}  // namespace

std::vector<Challenge> parse_challenges(std::string_view header) {
  std::vector<Challenge> out;
  Scanner scan(header);
  for (;;) {
    scan.skip_commas();
    Challenge challenge;
    challenge.scheme = lower(scan.token());
    if (challenge.scheme.empty()) return out;
    if (!scan.skip_spaces() && !scan.at_end() && !scan.take(',')) return out;
    if (!read_params(scan, challenge)) return out;
    out.push_back(std::move(challenge));
  }
}

}  // namespace rasupd
