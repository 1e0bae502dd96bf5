#pragma once
// Signatures that other tools made, as the facts policy::evaluate() takes.

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "fence/pkey.hpp"
#include "image/manifest.hpp"
#include "policy/trust.hpp"
#include "support/fixture.hpp"

namespace rasupd::policy::test {

using rasupd::test::fixture;

inline constexpr char kIndex[] = "sha256:69f2fc1ecb6f27444a44a4558dede10304c683791cc8ba025818795633ba09e9";
inline constexpr char kAmd64[] = "sha256:63b741855d03d8df63ef59cb6cc70b81f75af045fda9e3b7513e03c380ac63c6";
inline constexpr char kArm64[] = "sha256:0ff2e687f484161dcc958615fc5d76caddfba9e1da32b563e9ae9c799d36f6de";

inline Key real_key(const std::string& name) {
  auto parsed = PublicKey::parse_pem(fixture("signing/keys/" + name));
  if (!parsed) return {name, parsed.error().message, {}};
  return {name, {}, [key = *parsed](std::string_view message, std::string_view signature) {
            return key.verify(message, signature);
          }};
}

/// The signatures of `PREFIX.sigmanifest.json`, as the source room gathers them.
inline std::vector<Candidate> recorded(const std::string& prefix, const std::string& subject) {
  std::vector<Candidate> out;
  const auto manifest =
      parse_artifact_manifest(fixture("signing/" + prefix + ".sigmanifest.json"), kOciManifest);
  EXPECT_TRUE(manifest.has_value());
  for (std::size_t i = 0; i < manifest->layers.size(); ++i) {
    Candidate candidate;
    candidate.carrier = "layer " + std::to_string(i);
    candidate.subject = subject;
    candidate.payload = fixture("signing/" + prefix + ".payload." + std::to_string(i) + ".json");
    const auto& annotations = manifest->layers[i].annotations;
    const auto text = annotations.find("dev.cosignproject.cosign/signature");
    const auto signature = text == annotations.end() ? std::nullopt : base64_decode(text->second);
    if (text == annotations.end()) {
      candidate.problem = "no signature annotation";
    } else if (!signature) {
      candidate.problem = "the signature is not base64";
    }
    candidate.signature = signature.value_or("");
    out.push_back(std::move(candidate));
  }
  return out;
}

inline Identity docker(const std::string& name, std::optional<std::string> tag = "1.0",
                       std::optional<std::string> digest = {}) {
  return {"docker", name, std::move(tag), std::move(digest)};
}

/// One sigstoreSigned requirement under rule "docker:test".
inline Rule signed_rule(SignedIdentity::Type type = SignedIdentity::Type::matchRepoDigestOrExact) {
  Requirement requirement;
  requirement.type = Requirement::Type::sigstoreSigned;
  requirement.type_name = "sigstoreSigned";
  requirement.identity.type = type;
  return {"docker:test", {requirement}};
}

inline Facts facts(std::vector<std::string> subjects, std::vector<Candidate> candidates,
                   std::vector<Key> keys) {
  Facts out;
  out.subjects = std::move(subjects);
  out.candidates = std::move(candidates);
  out.keys["0"] = std::move(keys);
  return out;
}

}  // namespace rasupd::policy::test
