#include "base/image_name.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace rasupd {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// Registries are allowed to refuse a longer host and repository together (distribution-spec).
constexpr std::size_t kMaxName = 255;
constexpr std::size_t kMaxTag = 128;

bool only(std::string_view text, std::string_view allowed) {
  return text.find_first_not_of(allowed) == std::string_view::npos;
}

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 && only(text, kDigits);
}

bool is_label(const std::string& label) {
  return !label.empty() && label.front() != '-' && label.back() != '-' &&
         only(label, std::string(kLetters) + "-");
}

bool is_component(std::string_view text) {
  for (;;) {
    const auto run = std::min(text.find_first_not_of(kLower), text.size());
    if (run == 0) return false;
    text.remove_prefix(run);
    if (text.empty()) return true;
    const auto separator = text.substr(0, text.find_first_of(kLower));
    if (separator != "." && separator != "_" && separator != "__" && !only(separator, "-")) return false;
    text.remove_prefix(separator.size());
  }
}

/// The first component names a host when it cannot be the first word of a short name.
bool looks_like_host(std::string_view first) {
  return first == "localhost" || first.find_first_of(".:[") != std::string_view::npos;
}

tl::unexpected<Error> short_name(std::string_view text, Kind kind) {
  const std::string shown = printable(text, 120);
  return fail(kind, fmt::format("\"{}\" does not say which registry it is in", shown),
              fmt::format("write it with its registry, e.g. registry.example.com/{}", shown));
}

}  // namespace

bool is_sha256_digest(std::string_view text) {
  constexpr std::string_view prefix = "sha256:";
  return text.size() == prefix.size() + 64 && text.starts_with(prefix) &&
         only(text.substr(prefix.size()), "0123456789abcdef");
}

bool is_tag(std::string_view text) {
  return !text.empty() && text.size() <= kMaxTag && text.front() != '.' && text.front() != '-' &&
         only(text, std::string(kLetters) + "._-");
}

bool is_host(std::string_view text) {
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos || end < 3 ||
        !only(text.substr(1, end - 1), "0123456789abcdefABCDEF:")) {
      return false;
    }
    const auto rest = text.substr(end + 1);
    return rest.empty() || (rest.front() == ':' && is_port(rest.substr(1)));
  }
  const auto colon = text.find(':');
  if (colon != std::string_view::npos && !is_port(text.substr(colon + 1))) return false;
  const auto labels = split(text.substr(0, colon), '.');
  return std::all_of(labels.begin(), labels.end(), is_label);
}

bool is_repository(std::string_view text) {
  const auto components = split(text, '/');
  return std::all_of(components.begin(), components.end(), [](const auto& c) { return is_component(c); });
}

Result<ImageName> ImageName::parse(std::string_view text, Kind kind) {
  const auto shown = [&] { return printable(text, 200); };
  ImageName name;
  std::string_view rest = text;
  if (const auto at = rest.find('@'); at != std::string_view::npos) {
    const auto digest = rest.substr(at + 1);
    if (!is_sha256_digest(digest)) {
      return fail(kind,
                  fmt::format("\"{}\": the digest is not sha256: and 64 lower-case hex digits", shown()));
    }
    name.digest = std::string(digest);
    rest = rest.substr(0, at);
  }
  const auto slash = rest.find('/');
  if (rest.empty() || slash == std::string_view::npos || !looks_like_host(rest.substr(0, slash))) {
    return short_name(text, kind);
  }
  name.host = std::string(rest.substr(0, slash));
  rest = rest.substr(slash + 1);
  if (const auto colon = rest.find(':'); colon != std::string_view::npos) {
    const auto tag = rest.substr(colon + 1);
    if (!is_tag(tag))
      return fail(kind, fmt::format("\"{}\": \"{}\" is not a tag", shown(), printable(tag, 140)));
    name.tag = std::string(tag);
    rest = rest.substr(0, colon);
  }
  name.repository = std::string(rest);
  if (!is_host(name.host)) return fail(kind, fmt::format("\"{}\": that is not a host name", shown()));
  if (!is_repository(name.repository)) {
    return fail(kind,
                fmt::format("\"{}\": a repository is lower-case words of a-z, 0-9, '.', '_', '-'", shown()));
  }
  if (name.host == "index.docker.io")
    name.host = "docker.io";  // its old name; containers/image does the same
  if (name.host == "docker.io" && name.repository.find('/') == std::string::npos) {
    name.repository = "library/" + name.repository;
  }
  if (name.name().size() > kMaxName) {
    return fail(kind, fmt::format("\"{}\": longer than {} characters", shown(), kMaxName));
  }
  return name;
}

std::string ImageName::str() const {
  return name() + (tag ? ":" + *tag : "") + (digest ? "@" + *digest : "");
}

}  // namespace rasupd
