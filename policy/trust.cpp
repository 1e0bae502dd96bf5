#include "policy/trust.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace rasupd::policy {
namespace {

constexpr std::string_view kHowToSign =
    "sign it: cosign sign --key KEY --recursive HOST/REPO@DIGEST (with --sign-container-identity "
    "HOST/REPO:TAG), or "
    "skopeo copy --sign-by-sigstore-private-key KEY";

/// A list in a message stops here; the journal is not for hundreds of stray signatures.
constexpr std::size_t kMaxShown = 8;

/// Name of the key that `candidate` is good by, or which check failed.
struct Verdict {
  const Key* key = nullptr;
  std::string problem;
};

Verdict judge(const Candidate& candidate, const Requirement& requirement, const std::vector<Key>& keys,
              const Identity& image, const Facts& facts) {
  if (!candidate.problem.empty()) return {nullptr, candidate.problem};
  if (std::find(facts.subjects.begin(), facts.subjects.end(), candidate.subject) == facts.subjects.end()) {
    return {nullptr, "it is about another manifest"};
  }
  // Verified before it is parsed: until here the payload is anybody's bytes.
  const auto key = std::find_if(keys.begin(), keys.end(), [&](const Key& k) {
    return k.verify && k.verify(candidate.payload, candidate.signature);
  });
  if (key == keys.end()) return {nullptr, "signed by none of the rule's keys"};
  const auto payload = parse_payload(candidate.payload);
  if (!payload) return {nullptr, payload.error().message};
  if (payload->manifest_digest != candidate.subject) {
    return {nullptr, fmt::format("it signs another digest, {}", printable(payload->manifest_digest, 150))};
  }
  std::string why;
  if (!identity_matches(requirement.identity, image, payload->docker_reference, &why)) return {nullptr, why};
  return {&*key, {}};
}

std::string describe(const Identity& image) {
  return image.transport + ":" + image.name + (image.tag ? ":" + *image.tag : "") +
         (image.digest ? "@" + *image.digest : "");
}

tl::unexpected<Error> unsigned_image(const Rule& rule, const Identity& image, const Facts& facts) {
  return fail(Kind::Untrusted,
              fmt::format("{} is not signed: policy rule {} needs a signature and there is none for {}",
                          describe(image), rule.scope, join(facts.subjects, " or ")),
              std::string(kHowToSign));
}

tl::unexpected<Error> none_good(const Rule& rule, const Identity& image,
                                const std::vector<std::string>& problems) {
  std::vector<std::string> shown(problems.begin(), problems.begin() + std::min(problems.size(), kMaxShown));
  if (problems.size() > kMaxShown) shown.push_back(fmt::format("and {} more", problems.size() - kMaxShown));
  const bool layout = image.transport != "docker";
  return fail(
      Kind::Untrusted,
      fmt::format("{} has no signature that policy rule {} accepts: {}", describe(image), rule.scope,
                  join(shown, "; ")),
      layout ? "an image on disk is matched by signedIdentity exactReference or exactRepository in the policy"
             : "compare the rule's keys and its signedIdentity in the policy with how the image was signed");
}

/// The keys of a requirement; one that cannot be used fails it even where another would match, so that a
/// broken rotation is noticed while it still matters little.
Result<const std::vector<Key>*> keys_of(const Rule& rule, std::size_t index, const Facts& facts) {
  const auto found = facts.keys.find(std::to_string(index));
  if (found == facts.keys.end() || found->second.empty()) {
    return fail(Kind::Config, fmt::format("policy rule {}: requirement {} has no keys", rule.scope, index));
  }
  for (const Key& key : found->second) {
    if (!key.problem.empty()) {
      return fail(Kind::Config, fmt::format("policy rule {}: key {}: {}", rule.scope, key.name, key.problem),
                  "put a PEM public key there, or take it out of the policy");
    }
  }
  return &found->second;
}

Result<void> require_signature(const Rule& rule, std::size_t index, const Identity& image, const Facts& facts,
                               Accepted* accepted) {
  const auto* keys = TRY(keys_of(rule, index, facts));
  if (facts.candidates.empty()) return unsigned_image(rule, image, facts);
  std::vector<std::string> problems;
  for (const Candidate& candidate : facts.candidates) {
    const Verdict verdict = judge(candidate, rule.requirements[index], *keys, image, facts);
    if (!verdict.key) {
      problems.push_back(printable(candidate.carrier + ": " + verdict.problem));
      continue;
    }
    accepted->key += (accepted->key.empty() ? "" : ", ") + verdict.key->name;
    if (!accepted->verified) {
      accepted->carrier = candidate.carrier;
      accepted->subject = candidate.subject;
    }
    accepted->verified = true;
    return {};
  }
  return none_good(rule, image, problems);
}

Result<void> require(const Rule& rule, std::size_t index, const Identity& image, const Facts& facts,
                     Accepted* accepted) {
  const Requirement& requirement = rule.requirements[index];
  switch (requirement.type) {
    case Requirement::Type::insecureAcceptAnything:
      return {};
    case Requirement::Type::reject:
      return fail(Kind::Untrusted, fmt::format("policy rule {} rejects {}", rule.scope, describe(image)),
                  "add a scope for it to the policy, with sigstoreSigned and your key");
    case Requirement::Type::sigstoreSigned:
      return require_signature(rule, index, image, facts, accepted);
    case Requirement::Type::unsupported:
      break;
  }
  return fail(
      Kind::Config,
      fmt::format("policy rule {}: {} with {} cannot be checked by this program, so the image is refused",
                  rule.scope, requirement.type_name, requirement.unsupported_why),
      "use sigstoreSigned with keyPath for this scope");
}

}  // namespace

Result<Accepted> evaluate(const Rule& rule, const Identity& image, const Facts& facts) {
  if (rule.requirements.empty())
    return fail(Kind::Config, fmt::format("policy rule {} is empty", rule.scope));
  Accepted accepted;
  accepted.rule = rule.scope;
  for (std::size_t i = 0; i < rule.requirements.size(); ++i) TRY(require(rule, i, image, facts, &accepted));
  if (accepted.verified || facts.scope_may_be_unverified) return accepted;
  return fail(
      Kind::Untrusted,
      fmt::format("policy rule {} takes {} without any signature", rule.scope, describe(image)),
      fmt::format("require one with sigstoreSigned, or name the scope in [trust] unverified_scopes: {}",
                  rule.scope));
}

}  // namespace rasupd::policy
