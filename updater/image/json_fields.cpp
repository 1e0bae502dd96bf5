#include "image/json_fields.hpp"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.hpp"

namespace rasupd {
namespace {

/// The simple folding of Go's encoding/json for names of ASCII letters: case, and the two letters beyond
/// ASCII that fold into it (U+017F long s, U+212A Kelvin sign).
std::string fold(std::string_view name) {
  std::string out;
  while (!name.empty()) {
    if (name.starts_with("\u017F")) {
      out += 's';
      name.remove_prefix(2);
    } else if (name.starts_with("\u212A")) {
      out += 'k';
      name.remove_prefix(3);
    } else {
      const char c = name.front();
      out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      name.remove_prefix(1);
    }
  }
  return out;
}

Result<std::optional<Platform>> parse_platform(const Json& node, std::string_view what) {
  const auto it = node.find("platform");
  if (it == node.end() || it->is_null()) return std::optional<Platform>{};
  const std::string where = fmt::format("{}: platform", what);
  if (!it->is_object()) return fail(Kind::Untrusted, where + " is not an object");
  TRY(check_no_folded_names(*it, {"os", "architecture", "variant"}, where));
  Platform platform;
  platform.os = TRY(json_string(*it, "os", where, Kind::Untrusted));
  platform.architecture = TRY(json_string(*it, "architecture", where, Kind::Untrusted));
  platform.variant = TRY(json_optional_string(*it, "variant", where, Kind::Untrusted)).value_or("");
  return std::optional(std::move(platform));
}

}  // namespace

Result<void> check_no_folded_names(const Json& node, std::initializer_list<std::string_view> names,
                                   std::string_view what) {
  for (const auto& [key, value] : node.items()) {
    for (const auto name : names) {
      if (key != name && fold(key) == fold(name)) {
        return fail(Kind::Untrusted, fmt::format("{}: member \"{}\" passes for \"{}\" with some readers",
                                                 what, printable(key, 80), name));
      }
    }
  }
  return {};
}

Result<const Json*> json_array(const Json& node, std::string_view key, std::string_view what) {
  const auto it = node.find(key);
  if (it == node.end()) return fail(Kind::Untrusted, fmt::format("{}: \"{}\" is missing", what, key));
  if (!it->is_array()) return fail(Kind::Untrusted, fmt::format("{}: \"{}\" is not a list", what, key));
  return &*it;
}

Result<Descriptor> parse_descriptor(const Json& node, std::string_view what) {
  if (!node.is_object()) return fail(Kind::Untrusted, fmt::format("{} is not an object", what));
  TRY(check_no_folded_names(node, {"mediaType", "digest", "size", "annotations", "platform"}, what));
  Descriptor descriptor;
  descriptor.media_type = TRY(json_string(node, "mediaType", what, Kind::Untrusted));
  const std::string digest = TRY(json_string(node, "digest", what, Kind::Untrusted));
  descriptor.digest = TRY(Digest::parse(digest).within(what));
  descriptor.size = TRY(json_unsigned(node, "size", what, Kind::Untrusted));
  // image-spec: size is an int64.
  if (descriptor.size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return fail(Kind::Untrusted, fmt::format("{}: size {} is beyond reason", what, descriptor.size));
  }
  descriptor.annotations = TRY(json_string_map(node, "annotations", what, Kind::Untrusted));
  descriptor.platform = TRY(parse_platform(node, what));
  return descriptor;
}

}  // namespace rasupd
