#include "policy/trust.hpp"

#include <gmock/gmock.h>

#include "recorded.hpp"

namespace rasupd::policy {
namespace {

using namespace test;
using rasupd::test::FailsWith;
using rasupd::test::Succeeds;
using Type = SignedIdentity::Type;
using testing::ElementsAre;
using testing::HasSubstr;

PolicyFile parsed(const std::string& text) {
  auto policy = parse_policy(text, "policy.json");
  EXPECT_THAT(policy, Succeeds()) << text;
  return policy ? *policy : PolicyFile{};
}

/// A policy with this one requirement as default.
std::string with_default(const std::string& requirement) {
  return R"({"default":[)" + requirement + "]}";
}

TEST(PolicyFile, RecordedOnesAreRead) {
  const auto policy = parsed(fixture("signing/policy/polnegrepo.json"));
  const auto& rule = policy.transports.at("docker").at("127.0.0.1:5055/neg");
  ASSERT_EQ(rule.size(), 1u);
  EXPECT_EQ(rule[0].type, Requirement::Type::sigstoreSigned);
  EXPECT_THAT(rule[0].key_paths, ElementsAre("p256.pub"));
  EXPECT_EQ(rule[0].identity.type, Type::matchRepository);
  EXPECT_EQ(policy.default_requirements.at(0).type, Requirement::Type::reject);
  EXPECT_THAT(parsed(fixture("signing/policy/polkp.json"))
                  .transports.at("docker")
                  .at("127.0.0.1:5055/neg")[0]
                  .key_paths,
              ElementsAre("p256b.pub", "p256.pub"));
}

TEST(PolicyFile, KeyDataIsDecoded) {
  const auto one = parsed(with_default(R"({"type":"sigstoreSigned","keyData":"UEVN"})"));
  EXPECT_THAT(one.default_requirements[0].key_data, ElementsAre("PEM"));
  const auto many = parsed(with_default(R"({"type":"sigstoreSigned","keyDatas":["UEVN","QQ=="]})"));
  EXPECT_THAT(many.default_requirements[0].key_data, ElementsAre("PEM", "A"));
}

TEST(PolicyFile, KnownButUnsupportedIsReadAndRefusesByName) {
  const std::pair<std::string, const char*> cases[] = {
      {fixture("signing/policy/polrekor.json"), "rekorPublicKeyPath"},
      {fixture("signing/policy/polpki.json"), "pki"},
      {R"({"default":[{"type":"reject"}],"transports":{"docker":{"127.0.0.1:5055/neg":[{"type":"sigstoreSigned",
          "fulcio":{"caPath":"/c","oidcIssuer":"https://i","subjectEmail":"a@b"},"rekorPublicKeyPath":"/r"}]}}})",
       "fulcio"},
      {R"({"default":[{"type":"reject"}],"transports":{"docker":{"127.0.0.1:5055/neg":[{"type":"signedBy",
          "keyType":"GPGKeys","keyPath":"/k"}]}}})",
       "signedBy"},
  };
  for (const auto& [text, name] : cases) {
    const Identity image = docker("127.0.0.1:5055/neg/good");
    const Rule rule = find_rule(parsed(text), image);
    ASSERT_EQ(rule.scope, "docker:127.0.0.1:5055/neg");
    Facts all = facts({kIndex}, recorded("negative/good.idx", kIndex), {real_key("p256.pub")});
    all.scope_may_be_unverified = true;  // even then: what cannot be checked is not skipped
    EXPECT_THAT(evaluate(rule, image, all), FailsWith(Kind::Config, name));
  }
}

TEST(PolicyFile, RefusedWhole) {
  const std::string key = R"("type":"sigstoreSigned","keyPath":"/k")";
  const std::string cases[] = {
      "",
      "[]",
      "{}",
      R"({"default":[]})",
      R"({"default":{}})",
      R"({"default":[{"type":"reject"}],"defaults":[]})",
      R"({"default":[{"type":"reject"}],"default":[{"type":"insecureAcceptAnything"}]})",
      R"({"default":[{"type":"reject"}]} {})",
      R"({"default":[{"type":"reject"}],"transports":[]})",
      R"({"default":[{"type":"reject"}],"transports":{"docker":{"a.b/c":[]}}})",
      R"({"default":[{"type":"reject"}],"transports":{"oci":{"/":[{"type":"reject"}]}}})",
      R"({"default":[{"type":"reject"}],"transports":{"oci":{"relative":[{"type":"reject"}]}}})",
      R"({"default":[{"type":"reject"}],"transports":{"oci":{"/a/../b":[{"type":"reject"}]}}})",
      with_default("{}"),
      with_default(R"({"type":"Reject"})"),
      with_default(R"({"type":"reject","x":1})"),
      with_default(R"({"type":"sigstoreSigned"})"),
      with_default(R"({"type":"sigstoreSigned","keyPath":null})"),
      with_default(R"({"type":"sigstoreSigned","KeyPath":"/k"})"),
      with_default(R"({"type":"sigstoreSigned","keyPaths":[]})"),
      with_default(R"({"type":"sigstoreSigned","keyPaths":"/k"})"),
      with_default(R"({"type":"sigstoreSigned","keyData":"not base64!"})"),
      with_default("{" + key + R"(,"keyData":"QQ=="})"),
      with_default("{" + key + R"(,"rekorPublicKeyPath":"/r","rekorPublicKeyData":"QQ=="})"),
      with_default(
          R"({"type":"sigstoreSigned","fulcio":{"caPath":"/c","oidcIssuer":"i","subjectEmail":"e"}})"),
      with_default(R"({"type":"sigstoreSigned","pki":{"caRootsPath":"/c"}})"),
      with_default(R"({"type":"sigstoreSigned","pki":{"caRootsPath":"/c","subjectEmail":"e","x":"y"}})"),
      with_default("{" + key + R"(,"signedIdentity":{"type":"matchAnything"}})"),
      with_default("{" + key + R"(,"signedIdentity":{"type":"matchExact","x":1}})"),
      with_default("{" + key + R"(,"signedIdentity":{"type":"exactReference","dockerReference":"a.b/c"}})"),
      with_default("{" + key + R"(,"signedIdentity":{"type":"exactReference"}})"),
      with_default("{" + key +
                   R"(,"signedIdentity":{"type":"remapIdentity","prefix":"a.b:x/","signedPrefix":"c.d"}})"),
      with_default(R"({"type":"signedBy","keyType":"PGP","keyPath":"/k"})"),
      with_default(R"({"type":"signedBy","keyType":"GPGKeys"})"),
  };
  for (const auto& text : cases)
    EXPECT_THAT(parse_policy(text, "policy.json"), FailsWith(Kind::Config, "policy.json")) << text;
}

/// A policy in which every scope is its own rule.
PolicyFile scopes(const std::string& transport, const std::vector<std::string>& names) {
  PolicyFile policy;
  policy.default_requirements.resize(1);
  for (const auto& name : names) policy.transports[transport][name].resize(1);
  return policy;
}

TEST(FindRule, MostSpecificScopeOfARegistryImage) {
  const std::string digest = kIndex;
  std::vector<std::string> order = {"h.b.c:50/n/r@" + digest,
                                    "h.b.c:50/n/r:1",
                                    "h.b.c:50/n/r",
                                    "h.b.c:50/n",
                                    "h.b.c:50",
                                    "*.b.c",
                                    "*.c",
                                    ""};
  const Identity image = docker("h.b.c:50/n/r", "1", digest);
  while (!order.empty()) {
    EXPECT_EQ(find_rule(scopes("docker", order), image).scope, "docker:" + order.front());
    order.erase(order.begin());
  }
  EXPECT_EQ(find_rule(scopes("docker", order), image).scope, "default");
}

TEST(FindRule, WhatLooksAlikeIsNotAParent) {
  for (const char* scope :
       {"h.b.c", "h.b.c:50/n/r:2", "h.b.c:50/n/rr", "h.b.c:50/nn", "*.h.b.c", "b.c", "/n/r"}) {
    EXPECT_EQ(find_rule(scopes("docker", {scope}), docker("h.b.c:50/n/r", "1")).scope, "default") << scope;
  }
  EXPECT_EQ(find_rule(scopes("oci", {""}), docker("h.b.c/n", "1")).scope, "default");
}

TEST(FindRule, PathsAndTheirParents) {
  std::vector<std::string> order = {"/a/b/c:1", "/a/b/c", "/a/b", "/a", ""};
  while (!order.empty()) {
    EXPECT_EQ(find_rule(scopes("oci", order), {"oci", "/a/b/c", "1", {}}).scope, "oci:" + order.front());
    order.erase(order.begin());
  }
  EXPECT_EQ(find_rule(scopes("oci", {"/a/b/c:2", "/a/b/cc", "/"}), {"oci", "/a/b/c", "1", {}}).scope,
            "default");
}

struct IdentityCase {
  Type type;
  std::optional<std::string> tag, digest;
  const char* signed_as;
  bool matches;
};

TEST(Identity, TheTableOfThePolicyPage) {
  const std::string d = kIndex, other = kAmd64, name = "h.example/r";
  const std::string with_d = name + "@" + d, with_other = name + "@" + other, both = name + ":1@" + d;
  const IdentityCase cases[] = {
      {Type::matchExact, "1", {}, "h.example/r:1", true},
      {Type::matchExact, "1", {}, "h.example/r:2", false},
      {Type::matchExact, "1", {}, "h.example/r", false},
      {Type::matchExact, {}, d, with_d.c_str(), true},
      {Type::matchExact, {}, d, "h.example/r:1", false},
      {Type::matchRepoDigestOrExact, "1", {}, "h.example/r:1", true},
      {Type::matchRepoDigestOrExact, "1", {}, "h.example/r:2", false},
      {Type::matchRepoDigestOrExact, "1", {}, "h.example/r", false},
      {Type::matchRepoDigestOrExact, {}, d, "h.example/r:2", true},
      {Type::matchRepoDigestOrExact, {}, d, with_other.c_str(), true},
      {Type::matchRepoDigestOrExact, {}, d, "h.example/r", false},
      {Type::matchRepoDigestOrExact, {}, d, "h.example/other:1", false},
      {Type::matchRepoDigestOrExact, "1", d, "h.example/r:1", false},
      {Type::matchRepoDigestOrExact, "1", d, both.c_str(), true},
      {Type::matchRepository, "1", {}, "h.example/r:9", true},
      {Type::matchRepository, "1", {}, "h.example/r", true},
      {Type::matchRepository, "1", {}, "h.example/rr", false},
      {Type::matchRepository, "1", {}, "h.example:80/r", false},
      {Type::matchRepository, "1", {}, "r:1", false},
      {Type::matchRepository, "1", {}, "", false},
  };
  for (const auto& c : cases) {
    SignedIdentity rule;
    rule.type = c.type;
    std::string why;
    EXPECT_EQ(identity_matches(rule, docker("h.example/r", c.tag, c.digest), c.signed_as, &why), c.matches)
        << c.signed_as << " " << why;
    EXPECT_EQ(why.empty(), c.matches);
  }
}

TEST(Identity, FixedNames) {
  const SignedIdentity reference{Type::exactReference, "h.example/r:1", "", "", ""};
  const SignedIdentity repository{Type::exactRepository, "", "h.example/r", "", ""};
  for (const Identity& image : {docker("else.example/x"), Identity{"oci", "/p", "1", {}}}) {
    EXPECT_TRUE(identity_matches(reference, image, "h.example/r:1", nullptr));
    EXPECT_FALSE(identity_matches(reference, image, "h.example/r:2", nullptr));
    EXPECT_TRUE(identity_matches(repository, image, "h.example/r:2", nullptr));
    EXPECT_FALSE(identity_matches(repository, image, "h.example/rr:2", nullptr));
  }
}

TEST(Identity, Remap) {
  const auto rule = [](const char* from, const char* to) {
    return SignedIdentity{Type::remapIdentity, "", "", from, to};
  };
  const Identity image = docker("mirror.example/ns/r", "1");
  EXPECT_TRUE(identity_matches(rule("mirror.example", "h.example"), image, "h.example/ns/r:1", nullptr));
  EXPECT_TRUE(identity_matches(rule("mirror.example/ns", "h.example/x"), image, "h.example/x/r:1", nullptr));
  EXPECT_TRUE(identity_matches(rule("mirror.example/ns/r", "h.example/y"), image, "h.example/y:1", nullptr));
  EXPECT_FALSE(identity_matches(rule("mirror.example/n", "h.example/x"), image, "h.example/xs/r:1", nullptr));
  EXPECT_TRUE(identity_matches(rule("other.example", "h.example"), image, "mirror.example/ns/r:1", nullptr));
  EXPECT_FALSE(
      identity_matches(rule("mirror.example", "h.example"), image, "mirror.example/ns/r:1", nullptr));
}

TEST(Evaluate, UnsignedIsSaidAndHowToSign) {
  const auto refused =
      evaluate(signed_rule(), docker("h.example/r"), facts({kIndex}, {}, {real_key("p256.pub")}));
  ASSERT_THAT(refused, FailsWith(Kind::Untrusted, "is not signed"));
  EXPECT_THAT(refused.error().message, HasSubstr(kIndex));
  EXPECT_THAT(refused.error().hint, HasSubstr("cosign sign"));
}

TEST(Evaluate, UnusableKeysAreConfigEvenBesideAGoodOne) {
  const auto candidates = recorded("negative/good.idx", kIndex);
  const Identity image = docker("127.0.0.1:5055/neg/good");
  const Key broken{"/etc/broken.pub", "not a key", {}};
  EXPECT_THAT(evaluate(signed_rule(), image, facts({kIndex}, candidates, {real_key("p256.pub"), broken})),
              FailsWith(Kind::Config, "/etc/broken.pub"));
  EXPECT_THAT(evaluate(signed_rule(), image, facts({kIndex}, candidates, {})),
              FailsWith(Kind::Config, "no keys"));
  EXPECT_THAT(evaluate({"default", {}}, image, facts({kIndex}, candidates, {})),
              FailsWith(Kind::Config, "empty"));
}

TEST(Evaluate, ASignatureIsForTheManifestItWasFoundUnder) {
  const auto found_elsewhere = recorded("negative/good.idx", kAmd64);
  const Identity image = docker("127.0.0.1:5055/neg/good");
  EXPECT_THAT(evaluate(signed_rule(), image, facts({kAmd64}, found_elsewhere, {real_key("p256.pub")})),
              FailsWith(Kind::Untrusted, "another digest"));
  EXPECT_THAT(evaluate(signed_rule(), image,
                       facts({kAmd64}, recorded("negative/good.idx", kIndex), {real_key("p256.pub")})),
              FailsWith(Kind::Untrusted, "another manifest"));
}

TEST(Evaluate, OneGoodSignatureIsEnoughAndEveryBadOneIsNamed) {
  auto candidates = recorded("negative/wrong-key.idx", kIndex);
  auto missing = recorded("negative/sig-missing.idx", kIndex);
  candidates[0].carrier = "first";
  missing[0].carrier = "second";
  candidates.push_back(missing[0]);
  const Identity image = docker("127.0.0.1:5055/neg/good");
  const auto refused = evaluate(signed_rule(), image, facts({kIndex}, candidates, {real_key("p256.pub")}));
  ASSERT_THAT(refused, FailsWith(Kind::Untrusted, "first: signed by none"));
  EXPECT_THAT(refused.error().message, HasSubstr("second: no signature annotation"));
  auto good = recorded("negative/good.idx", kIndex);
  good[0].carrier = "third";
  candidates.push_back(good[0]);
  const auto accepted = evaluate(signed_rule(), image,
                                 facts({kIndex}, candidates, {real_key("p256b.pub"), real_key("p256.pub")}));
  ASSERT_THAT(accepted, Succeeds());
  EXPECT_EQ(accepted->carrier, "third");
  EXPECT_EQ(accepted->key, "p256.pub");
}

TEST(Evaluate, ManyBadSignaturesMakeAShortMessage) {
  std::vector<Candidate> candidates(300, recorded("negative/wrong-key.idx", kIndex)[0]);
  const auto refused =
      evaluate(signed_rule(), docker("h.example/r"), facts({kIndex}, candidates, {real_key("p256.pub")}));
  ASSERT_THAT(refused, FailsWith(Kind::Untrusted, "and 292 more"));
  EXPECT_LT(refused.error().message.size(), 2000u);
}

TEST(Evaluate, AllRequirementsMustHold) {
  const Identity image = docker("127.0.0.1:5055/neg/good");
  Rule rule = signed_rule();
  rule.requirements.push_back(rule.requirements[0]);
  Facts all = facts({kIndex}, recorded("negative/good.idx", kIndex), {real_key("p256.pub")});
  all.keys["1"] = {real_key("p256b.pub")};
  EXPECT_THAT(evaluate(rule, image, all), FailsWith(Kind::Untrusted, "none of the rule's keys"));
  all.keys["1"] = {real_key("p256.pub")};
  EXPECT_THAT(evaluate(rule, image, all), Succeeds());
  rule.requirements[1].type = Requirement::Type::reject;
  EXPECT_THAT(evaluate(rule, image, all), FailsWith(Kind::Untrusted, "rejects"));
}

// R11: acceptance without a signature is refused unless this machine's own configuration names the scope.
TEST(Evaluate, AcceptAnythingIsNotEnough) {
  Requirement anything;
  anything.type = Requirement::Type::insecureAcceptAnything;
  const Rule rule{"docker:h.example", {anything}};
  Facts none = facts({kIndex}, {}, {});
  const auto refused = evaluate(rule, docker("h.example/r"), none);
  ASSERT_THAT(refused, FailsWith(Kind::Untrusted, "without any signature"));
  EXPECT_THAT(refused.error().hint, HasSubstr("docker:h.example"));
  none.scope_may_be_unverified = true;
  const auto accepted = evaluate(rule, docker("h.example/r"), none);
  ASSERT_THAT(accepted, Succeeds());
  EXPECT_FALSE(accepted->verified);
  EXPECT_EQ(accepted->key, "");
}

TEST(Evaluate, AnUnverifiedScopeStillNeedsTheSignatureItsRuleAsksFor) {
  Facts none = facts({kIndex}, {}, {real_key("p256.pub")});
  none.scope_may_be_unverified = true;
  EXPECT_THAT(evaluate(signed_rule(), docker("h.example/r"), none),
              FailsWith(Kind::Untrusted, "is not signed"));
}

TEST(Evaluate, AnImageOnDiskNeedsAnIdentityThatCanMatch) {
  const Identity image{"oci", "/var/images/os", "1.0", {}};
  const auto all = facts({kIndex}, recorded("negative/good.idx", kIndex), {real_key("p256.pub")});
  for (const Type type :
       {Type::matchExact, Type::matchRepoDigestOrExact, Type::matchRepository, Type::remapIdentity}) {
    EXPECT_THAT(evaluate(signed_rule(type), image, all),
                FailsWith(Kind::Untrusted, "exactReference or exactRepository"));
  }
  Rule rule = signed_rule(Type::exactRepository);
  rule.requirements[0].identity.docker_repository = "127.0.0.1:5055/neg/good";
  EXPECT_THAT(evaluate(rule, image, all), Succeeds());
}

TEST(Payload, Strict) {
  const std::string good = fixture("signing/negative/good.idx.payload.0.json");
  const auto payload = parse_payload(good);
  ASSERT_THAT(payload, Succeeds());
  EXPECT_EQ(payload->manifest_digest, kIndex);
  EXPECT_EQ(payload->docker_reference, "127.0.0.1:5055/neg/good:1.0");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::pair<const char*, const char*> changes[] = {
      {R"(,"optional":null)", ""},
      {R"("optional":null)", R"("optional":[])"},
      {R"("optional":null)", R"("Optional":null)"},
      {R"("optional":null)", R"("optional":{"creator":1})"},
      {R"("optional":null)", R"("optional":{"timestamp":1.5})"},
      {"docker-manifest-digest", "Docker-Manifest-Digest"},
      {R"("cosign container image signature")", "1"},
      {"cosign container", "atomic container"},
      {R"("127.0.0.1:5055/neg/good:1.0")", "null"},
  };
  for (const auto& [from, to] : changes) {
    EXPECT_THAT(parse_payload(with(from, to)), FailsWith(Kind::Untrusted, "payload")) << from << " → " << to;
  }
  EXPECT_THAT(parse_payload(good + std::string(1, '\0')), FailsWith(Kind::Untrusted, "payload"));
  EXPECT_THAT(parse_payload(good + std::string(70'000, ' ')), FailsWith(Kind::Untrusted, "payload"));
}

}  // namespace
}  // namespace rasupd::policy
