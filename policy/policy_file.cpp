// policy.json as a value (containers-policy.json(5)): a file is taken whole or not at all.

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>

#include "base/image_name.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "policy/trust.hpp"

namespace rasupd::policy {
namespace {

/// Policies are written by hand; a megabyte is beyond any.
constexpr std::size_t kMaxPolicyBytes = 1u << 20;

tl::unexpected<Error> bad(std::string_view where, std::string_view why) {
  return fail(Kind::Config, fmt::format("{}: {}", where, why));
}

Result<void> check_members(const Json& node, std::initializer_list<std::string_view> known,
                           std::string_view where) {
  if (!node.is_object()) return bad(where, "not an object");
  for (const auto& [key, value] : node.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return bad(where, fmt::format("unknown key \"{}\"", printable(key, 80)));
    }
  }
  return {};
}

Result<std::string> text_member(const Json& node, std::string_view key, std::string_view where) {
  return json_string(node, key, where, Kind::Config);
}

/// Member `key`: a string, or with `many` a list of at least one.
Result<std::vector<std::string>> text_list(const Json& node, const std::string& key, bool many,
                                           std::string_view where) {
  if (!many) return std::vector{TRY(text_member(node, key, where))};
  const Json& list = node.at(key);
  if (!list.is_array() || list.empty())
    return bad(where, fmt::format("\"{}\" is not a list of at least one", key));
  std::vector<std::string> out;
  for (const Json& entry : list) {
    if (!entry.is_string()) return bad(where, fmt::format("\"{}\" is not a list of strings", key));
    out.push_back(entry.get<std::string>());
  }
  return out;
}

/// Members of `names` that `node` has.
std::vector<std::string> present(const Json& node, std::initializer_list<const char*> names) {
  std::vector<std::string> out;
  for (const char* name : names) {
    if (node.contains(name)) out.emplace_back(name);
  }
  return out;
}

Result<std::vector<std::string>> decode_all(const std::vector<std::string>& texts, std::string_view where) {
  std::vector<std::string> out;
  for (const auto& text : texts) {
    auto decoded = base64_decode(text);
    if (!decoded) return bad(where, "key data that is not base64");
    out.push_back(std::move(*decoded));
  }
  return out;
}

/// A prefix of remapIdentity: a host, or host/repository or a namespace of it.
bool is_name_prefix(std::string_view text) {
  const auto slash = text.find('/');
  return is_host(text.substr(0, slash)) &&
         (slash == std::string_view::npos || is_repository(text.substr(slash + 1)));
}

Result<void> parse_remap(const Json& node, SignedIdentity* identity, const std::string& where) {
  TRY(check_members(node, {"type", "prefix", "signedPrefix"}, where));
  identity->prefix = TRY(text_member(node, "prefix", where));
  identity->signed_prefix = TRY(text_member(node, "signedPrefix", where));
  if (is_name_prefix(identity->prefix) && is_name_prefix(identity->signed_prefix)) return {};
  return bad(where, "prefix and signedPrefix are HOST[:PORT][/REPO] without a tag");
}

/// The members that go with the identity's type.
Result<void> parse_identity_members(const Json& node, SignedIdentity* identity, const std::string& where) {
  using Type = SignedIdentity::Type;
  switch (identity->type) {
    case Type::exactReference: {
      TRY(check_members(node, {"type", "dockerReference"}, where));
      const ImageName name =
          TRY(ImageName::parse(TRY(text_member(node, "dockerReference", where)), Kind::Config).within(where));
      if (!name.tag && !name.digest) return bad(where, "dockerReference has neither tag nor digest");
      identity->docker_reference = name.str();
      return {};
    }
    case Type::exactRepository: {
      TRY(check_members(node, {"type", "dockerRepository"}, where));
      const ImageName name = TRY(
          ImageName::parse(TRY(text_member(node, "dockerRepository", where)), Kind::Config).within(where));
      identity->docker_repository = name.name();
      return {};
    }
    case Type::remapIdentity:
      return parse_remap(node, identity, where);
    default:
      return check_members(node, {"type"}, where);
  }
}

Result<SignedIdentity> parse_identity(const Json& node, const std::string& where) {
  using Type = SignedIdentity::Type;
  static const std::map<std::string, Type> types = {
      {"matchExact", Type::matchExact},           {"matchRepoDigestOrExact", Type::matchRepoDigestOrExact},
      {"matchRepository", Type::matchRepository}, {"exactReference", Type::exactReference},
      {"exactRepository", Type::exactRepository}, {"remapIdentity", Type::remapIdentity},
  };
  const auto type = types.find(TRY(text_member(node, "type", where)));
  if (type == types.end()) return bad(where, "unknown identity type");
  SignedIdentity identity;
  identity.type = type->second;
  TRY(parse_identity_members(node, &identity, where));
  return identity;
}

Result<SignedIdentity> parse_identity_of(const Json& node, const std::string& where) {
  const auto it = node.find("signedIdentity");
  if (it == node.end()) return SignedIdentity{};  // matchRepoDigestOrExact, as the man page says
  return parse_identity(*it, where + ".signedIdentity");
}

/// fulcio and pki are checked as far as their members go, so that a typing error is found today.
Result<void> check_certificates(const Json& node, const std::string& where) {
  if (node.contains("fulcio")) {
    const Json& fulcio = node.at("fulcio");
    const std::string at = where + ".fulcio";
    TRY(check_members(fulcio, {"caPath", "caData", "oidcIssuer", "subjectEmail"}, at));
    if (present(fulcio, {"caPath", "caData"}).size() != 1)
      return bad(at, "exactly one of caPath, caData is needed");
    for (const auto& item : fulcio.items()) TRY(text_member(fulcio, item.key(), at));
    TRY(text_member(fulcio, "oidcIssuer", at));
    TRY(text_member(fulcio, "subjectEmail", at));
  }
  if (node.contains("pki")) {
    const Json& pki = node.at("pki");
    const std::string at = where + ".pki";
    TRY(check_members(pki,
                      {"caRootsPath", "caRootsData", "caIntermediatesPath", "caIntermediatesData",
                       "subjectEmail", "subjectHostname"},
                      at));
    for (const auto& item : pki.items()) TRY(text_member(pki, item.key(), at));
    if (present(pki, {"caRootsPath", "caRootsData"}).size() != 1)
      return bad(at, "exactly one of caRootsPath, caRootsData is needed");
    if (present(pki, {"caIntermediatesPath", "caIntermediatesData"}).size() > 1)
      return bad(at, "caIntermediates twice");
    if (present(pki, {"subjectEmail", "subjectHostname"}).empty())
      return bad(at, "subjectEmail or subjectHostname is needed");
  }
  return {};
}

Result<void> parse_sigstore(const Json& node, Requirement* out, const std::string& where) {
  TRY(check_members(
      node,
      {"type", "keyPath", "keyPaths", "keyData", "keyDatas", "fulcio", "pki", "rekorPublicKeyPath",
       "rekorPublicKeyPaths", "rekorPublicKeyData", "rekorPublicKeyDatas", "signedIdentity"},
      where));
  const auto sources = present(node, {"keyPath", "keyPaths", "keyData", "keyDatas", "fulcio", "pki"});
  if (sources.size() != 1) {
    return bad(where, "exactly one of keyPath, keyPaths, keyData, keyDatas, fulcio and pki is needed");
  }
  const std::string& source = sources.front();
  const auto rekor = present(
      node, {"rekorPublicKeyPath", "rekorPublicKeyPaths", "rekorPublicKeyData", "rekorPublicKeyDatas"});
  if (rekor.size() > 1) return bad(where, "more than one rekorPublicKey…");
  if (source == "fulcio" && rekor.empty()) return bad(where, "fulcio needs a rekorPublicKey…");
  if (source == "pki" && !rekor.empty()) return bad(where, "pki does not go with rekorPublicKey…");
  for (const auto& key : rekor) TRY(text_list(node, key, key.back() == 's', where));
  TRY(check_certificates(node, where));
  if (source == "keyPath" || source == "keyPaths") {
    out->key_paths = TRY(text_list(node, source, source == "keyPaths", where));
  } else if (source == "keyData" || source == "keyDatas") {
    out->key_data = TRY(decode_all(TRY(text_list(node, source, source == "keyDatas", where)), where));
  }
  out->identity = TRY(parse_identity_of(node, where));
  const bool plain = rekor.empty() && source != "fulcio" && source != "pki";
  out->type = plain ? Requirement::Type::sigstoreSigned : Requirement::Type::unsupported;
  if (!plain) out->unsupported_why = rekor.empty() || source == "fulcio" ? source : rekor.front();
  return {};
}

Result<void> parse_gpg(const Json& node, Requirement* out, const std::string& where) {
  TRY(check_members(node, {"type", "keyType", "keyPath", "keyPaths", "keyData", "signedIdentity"}, where));
  const std::string key_type = TRY(text_member(node, "keyType", where));
  // The man page's one value and those containers/image reserves.
  static const std::set<std::string> types = {"GPGKeys", "signedByGPGKeys", "X509Certificates",
                                              "signedByX509CAs"};
  if (!types.contains(key_type)) return bad(where, "unknown keyType");
  const auto sources = present(node, {"keyPath", "keyPaths", "keyData"});
  if (sources.size() != 1) return bad(where, "exactly one of keyPath, keyPaths and keyData is needed");
  const auto texts = TRY(text_list(node, sources.front(), sources.front() == "keyPaths", where));
  if (sources.front() == "keyData") TRY(decode_all(texts, where));
  out->identity = TRY(parse_identity_of(node, where));
  out->type = Requirement::Type::unsupported;
  out->unsupported_why = key_type;
  return {};
}

Result<Requirement> parse_requirement(const Json& node, const std::string& where) {
  Requirement out;
  out.type_name = TRY(text_member(node, "type", where));
  if (out.type_name == "insecureAcceptAnything" || out.type_name == "reject") {
    TRY(check_members(node, {"type"}, where));
    out.type =
        out.type_name == "reject" ? Requirement::Type::reject : Requirement::Type::insecureAcceptAnything;
  } else if (out.type_name == "sigstoreSigned") {
    TRY(parse_sigstore(node, &out, where));
  } else if (out.type_name == "signedBy") {
    TRY(parse_gpg(node, &out, where));
  } else if (out.type_name == "signedBaseLayer") {
    TRY(check_members(node, {"type", "baseLayerIdentity"}, where));
    if (!node.contains("baseLayerIdentity")) return bad(where, "\"baseLayerIdentity\" is missing");
    TRY(parse_identity(node.at("baseLayerIdentity"), where + ".baseLayerIdentity"));
    out.type = Requirement::Type::unsupported;
    out.unsupported_why = "base layers";
  } else {
    return bad(where, fmt::format("unknown requirement type \"{}\"", printable(out.type_name, 80)));
  }
  return out;
}

Result<std::vector<Requirement>> parse_requirements(const Json& node, const std::string& where) {
  if (!node.is_array() || node.empty()) return bad(where, "not a list of at least one requirement");
  std::vector<Requirement> out;
  for (const Json& entry : node) {
    out.push_back(TRY(parse_requirement(entry, fmt::format("{}[{}]", where, out.size()))));
  }
  return out;
}

/// Scopes of transports that are paths: absolute, without detours, and "" instead of "/" (man page, dir:).
Result<void> check_scope(const std::string& transport, const std::string& scope, const std::string& where) {
  if (transport != "oci" && transport != "oci-archive" && transport != "dir") return {};
  if (scope.empty()) return {};
  const bool clean = scope.front() == '/' && scope.back() != '/' && scope.find("//") == std::string::npos &&
                     (scope + "/").find("/./") == std::string::npos &&
                     (scope + "/").find("/../") == std::string::npos;
  if (clean) return {};
  return bad(where,
             R"(a scope here is an absolute path without "." and "..", and "" where all paths are meant)");
}

}  // namespace

Result<PolicyFile> parse_policy(std::string_view text, std::string_view what) {
  const Json json = TRY(parse_json(text, what, Kind::Config, kMaxPolicyBytes));
  TRY(check_members(json, {"default", "transports"}, what));
  if (!json.contains("default")) return bad(what, "\"default\" is missing");
  PolicyFile policy;
  policy.default_requirements = TRY(parse_requirements(json.at("default"), fmt::format("{}: default", what)));
  if (!json.contains("transports")) return policy;
  if (!json.at("transports").is_object()) return bad(what, "\"transports\" is not an object");
  for (const auto& [transport, scopes] : json.at("transports").items()) {
    const std::string name = printable(transport, 80);
    if (!scopes.is_object()) return bad(what, fmt::format("transports.{} is not an object", name));
    auto& rules = policy.transports[transport];
    for (const auto& [scope, requirements] : scopes.items()) {
      const std::string where = fmt::format("{}: {} \"{}\"", what, name, printable(scope, 120));
      TRY(check_scope(transport, scope, where));
      rules[scope] = TRY(parse_requirements(requirements, where));
    }
  }
  return policy;
}

}  // namespace rasupd::policy
