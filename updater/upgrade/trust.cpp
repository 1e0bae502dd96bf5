#include "upgrade/trust.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/files.hpp"
#include "fence/pkey.hpp"
#include "upgrade/signatures.hpp"

namespace rasupd {
namespace {

/// A policy or key file is written by people.
constexpr std::size_t kMaxPolicy = 1u << 20;
constexpr std::size_t kMaxKey = 64u << 10;

constexpr const char* kPolicyFiles[] = {"etc/rasupd/policy.json", "usr/lib/rasupd/policy.json",
                                        "etc/containers/policy.json"};

policy::Key usable_key(std::string name, const Result<std::optional<std::string>>& pem) {
  if (!pem) return {std::move(name), pem.error().message, {}};
  if (!*pem) return {std::move(name), "there is no such file", {}};
  auto key = PublicKey::parse_pem(**pem);
  if (!key) return {std::move(name), key.error().message, {}};
  return {std::move(name), {}, [key = *key](std::string_view message, std::string_view signature) {
            return key.verify(message, signature);
          }};
}

std::map<std::string, std::vector<policy::Key>> read_keys(const policy::Rule& rule) {
  std::map<std::string, std::vector<policy::Key>> keys;
  for (std::size_t i = 0; i < rule.requirements.size(); ++i) {
    auto& list = keys[std::to_string(i)];
    for (const std::string& path : rule.requirements[i].key_paths) {
      list.push_back(usable_key(path, read_file(path, kMaxKey, Kind::Config)));
    }
    for (std::size_t k = 0; k < rule.requirements[i].key_data.size(); ++k) {
      list.push_back(
          usable_key(fmt::format("keyData {}", k), std::optional(rule.requirements[i].key_data[k])));
    }
  }
  return keys;
}

bool needs_signatures(const policy::Rule& rule) {
  return std::any_of(rule.requirements.begin(), rule.requirements.end(), [](const policy::Requirement& r) {
    return r.type == policy::Requirement::Type::sigstoreSigned;
  });
}

}  // namespace

Result<policy::Identity> policy_identity(const Reference& reference, const std::optional<Digest>& digest) {
  policy::Identity identity;
  if (reference.transport == Transport::registry) {
    identity.transport = "docker";
    identity.name = reference.host + "/" + reference.repository;
  } else {
    identity.transport = transport_name(reference.transport);
    // Scopes are absolute paths without symlinks (containers-policy.json(5)).
    const std::unique_ptr<char, Deleter<std::free>> real(::realpath(reference.path.c_str(), nullptr));
    if (!real) return fail(Kind::NotFound, reference.path + ": there is no such image");
    identity.name = real.get();
  }
  if (!digest) identity.tag = reference.tag;
  if (digest) identity.digest = digest->str();
  if (!digest && reference.digest) identity.digest = reference.digest->str();
  return identity;
}

Result<FoundPolicy> find_policy(const std::string& config_root) {
  for (const char* name : kPolicyFiles) {
    const std::string path = path_join(config_root, name);
    const auto text = TRY(read_file(path, kMaxPolicy, Kind::Config));
    if (!text) continue;
    policy::PolicyFile file = TRY(policy::parse_policy(*text, path));
    return FoundPolicy{path, std::move(file)};
  }
  return fail(Kind::Untrusted, "there is no signature policy, so nothing can be trusted",
              fmt::format("write {} (containers-policy.json(5)) naming the key your images are signed with",
                          path_join(config_root, kPolicyFiles[0])));
}

Result<policy::Accepted> verify_image(const World& world, const Settings& settings, Source& source,
                                      const ResolvedImage& image, const std::optional<Digest>& digest) {
  const FoundPolicy found = TRY(find_policy(world.config_root));
  const policy::Identity identity = TRY(policy_identity(image.reference, digest));
  const policy::Rule rule = policy::find_rule(found.file, identity);
  policy::Facts facts;
  facts.subjects.push_back(image.document.digest.str());
  if (image.index) facts.subjects.push_back(image.index->digest.str());
  facts.keys = read_keys(rule);
  facts.scope_may_be_unverified =
      std::count(settings.unverified_scopes.begin(), settings.unverified_scopes.end(), rule.scope) > 0;
  std::optional<Error> trouble;
  if (needs_signatures(rule)) {
    GatheredSignatures gathered = TRY(gather_signatures(world, source, facts.subjects));
    facts.candidates = std::move(gathered.candidates);
    trouble = std::move(gathered.trouble);
  }
  auto accepted = policy::evaluate(rule, identity, facts);
  // "The registry did not answer" is another thing to do than "nobody signed it".
  if (!accepted && trouble && accepted.error().kind == Kind::Untrusted) return fail(std::move(*trouble));
  return std::move(accepted).within(found.path);
}

}  // namespace rasupd
