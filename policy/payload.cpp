// What a simple-signing signature says (containers-signature(5)), read after its bytes were verified.

#include <fmt/format.h>

#include <initializer_list>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/text.hpp"
#include "policy/trust.hpp"

namespace rasupd::policy {
namespace {

/// Payloads have 240 bytes and what signers put into "optional"; containers/image stops at 4 MiB.
constexpr std::size_t kMaxPayloadBytes = 64u << 10;
/// cosign's and podman's word in sigstore signatures ("atomic container signature" is GPG's).
constexpr std::string_view kType = "cosign container image signature";

/// Member `key`, an object with exactly the members `names`.
Result<const Json*> exact_object(const Json& parent, std::string_view key,
                                 std::initializer_list<std::string_view> names) {
  const auto it = parent.find(key);
  if (it == parent.end() || !it->is_object()) {
    return fail(Kind::Untrusted, fmt::format("payload: \"{}\" is missing or not an object", key));
  }
  for (const auto name : names) {
    if (!it->contains(name))
      return fail(Kind::Untrusted, fmt::format("payload: \"{}.{}\" is missing", key, name));
  }
  if (it->size() != names.size()) {
    return fail(Kind::Untrusted, fmt::format("payload: unknown members in \"{}\"", key));
  }
  return &*it;
}

/// "optional" is null or an object; the two members that have a meaning must have their types.
Result<void> check_optional(const Json& root) {
  const auto it = root.find("optional");
  if (it == root.end()) return fail(Kind::Untrusted, "payload: \"optional\" is missing");
  if (it->is_null()) return {};
  if (!it->is_object()) return fail(Kind::Untrusted, "payload: \"optional\" is not an object");
  if (it->contains("creator") && !it->at("creator").is_string()) {
    return fail(Kind::Untrusted, "payload: \"optional.creator\" is not a string");
  }
  if (it->contains("timestamp") && !it->at("timestamp").is_number_integer()) {
    return fail(Kind::Untrusted, "payload: \"optional.timestamp\" is not a whole number");
  }
  return {};
}

}  // namespace

Result<Payload> parse_payload(std::string_view bytes) {
  const Json root = TRY(parse_json(bytes, "payload", Kind::Untrusted, kMaxPayloadBytes));
  if (!root.is_object()) return fail(Kind::Untrusted, "payload: not an object");
  const Json* critical = TRY(exact_object(root, "critical", {"type", "image", "identity"}));
  TRY(check_optional(root));
  if (root.size() != 2)
    return fail(Kind::Untrusted, "payload: unknown members beside \"critical\" and \"optional\"");
  const Json* image = TRY(exact_object(*critical, "image", {"docker-manifest-digest"}));
  const Json* identity = TRY(exact_object(*critical, "identity", {"docker-reference"}));
  const std::string type = TRY(json_string(*critical, "type", "payload", Kind::Untrusted));
  if (type != kType) return fail(Kind::Untrusted, fmt::format("payload: type \"{}\"", printable(type, 80)));
  Payload payload;
  payload.manifest_digest = TRY(json_string(*image, "docker-manifest-digest", "payload", Kind::Untrusted));
  payload.docker_reference = TRY(json_string(*identity, "docker-reference", "payload", Kind::Untrusted));
  return payload;
}

}  // namespace rasupd::policy
