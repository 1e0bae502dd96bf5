// What cosign, skopeo and podman signed, and signatures that must be told apart, against the oracle.

#include "recorded.hpp"

#include <gmock/gmock.h>

namespace rasupd::policy {
namespace {

using namespace test;
using rasupd::test::FailsWith;
using rasupd::test::Succeeds;
using Type = SignedIdentity::Type;

struct Good {
  const char *prefix, *subject, *key, *repository, *tag;
  Type type;
};

constexpr char kPod[] = "sha256:530fa5318d991723a136a1d746de247a09320f1bd9f02287bb54a52100a07e94";

const Good kGood[] = {
    // cosign signs the bare repository, so only matchRepository takes it.
    {"cosign25-tag/index", kIndex, "c25.pub", "127.0.0.1:5055/rasos/os", "1.0", Type::matchRepository},
    {"cosign25-tag/amd64", kArm64, "c25.pub", "127.0.0.1:5055/rasos/os", "1.0", Type::matchRepository},
    {"cosign25-multi/index", kIndex, "c31.pub", "127.0.0.1:5055/rasos/multi", "1.0", Type::matchRepository},
    // --sign-container-identity: the second of two signatures names a tag.
    {"cosign25-multi/index", kIndex, "c25.pub", "registry.example.com/rasos/os", "1.0", Type::matchExact},
    {"cosign31-classic/index", kIndex, "c31.pub", nullptr, "1.0", Type::matchRepository},
    {"keytypes/ed", kIndex, "imp-ed.pub", "127.0.0.1:5055/rasos/ked", "1.0", Type::matchRepository},
    {"keytypes/rsa", kIndex, "imp-rsa.pub", "127.0.0.1:5055/rasos/krsa", "1.0", Type::matchRepository},
    // Two signatures, one over SHA-384 that nobody verifies: the other is enough.
    {"keytypes/p384", kIndex, "imp-p384.pub", "127.0.0.1:5055/rasos/kp384", "1.0", Type::matchRepository},
    {"podman54-sigstore/sha256-530fa5318d991723a136a1d746de247a09320f1bd9f02287bb54a52100a07e94.sig", kPod,
     "c25.pub", "127.0.0.1:5055/rasos/pod", "1.0", Type::matchRepoDigestOrExact},
    {"skopeo118-sigstore/sha256-69f2fc1ecb6f27444a44a4558dede10304c683791cc8ba025818795633ba09e9.sig", kIndex,
     "c25.pub", "127.0.0.1:5055/rasos/sk", "1.0", Type::matchRepoDigestOrExact},
    {"skopeo118-sigstore/sha256-63b741855d03d8df63ef59cb6cc70b81f75af045fda9e3b7513e03c380ac63c6.sig", kAmd64,
     "c25.pub", "127.0.0.1:5055/rasos/sk", "1.0", Type::matchRepoDigestOrExact},
    {"skopeo118-sigstore/sha256-0ff2e687f484161dcc958615fc5d76caddfba9e1da32b563e9ae9c799d36f6de.sig", kArm64,
     "c25.pub", "127.0.0.1:5055/rasos/sk", "1.0", Type::matchRepoDigestOrExact},
};

std::string repository_of(const Good& good) {
  if (good.repository) return good.repository;
  const auto payload = parse_payload(fixture(std::string("signing/") + good.prefix + ".payload.0.json"));
  return payload ? payload->docker_reference : "";
}

TEST(Recorded, EveryGoodSignatureVerifies) {
  for (const Good& good : kGood) {
    const auto accepted =
        evaluate(signed_rule(good.type), docker(repository_of(good), good.tag),
                 facts({good.subject}, recorded(good.prefix, good.subject), {real_key(good.key)}));
    ASSERT_THAT(accepted, Succeeds()) << good.prefix;
    EXPECT_TRUE(accepted->verified);
    EXPECT_EQ(accepted->key, good.key);
    EXPECT_EQ(accepted->subject, good.subject);
    EXPECT_EQ(accepted->rule, "docker:test");
  }
}

TEST(Recorded, AnotherKeyNeverVerifies) {
  for (const Good& good : kGood) {
    EXPECT_THAT(evaluate(signed_rule(good.type), docker(repository_of(good), good.tag),
                         facts({good.subject}, recorded(good.prefix, good.subject), {real_key("p256b.pub")})),
                FailsWith(Kind::Untrusted, "none of the rule's keys"))
        << good.prefix;
  }
}

TEST(Recorded, AnyChangedByteOfAPayloadIsRefused) {
  for (const Good& good : kGood) {
    const auto whole = recorded(good.prefix, good.subject);
    for (std::size_t i = 0; i < whole[0].payload.size(); i += 7) {
      auto changed = whole;
      for (auto& candidate : changed) {
        candidate.payload[i] = static_cast<char>(candidate.payload[i] ^ 1);
      }
      EXPECT_THAT(evaluate(signed_rule(good.type), docker(repository_of(good), good.tag),
                           facts({good.subject}, changed, {real_key(good.key)})),
                  FailsWith(Kind::Untrusted, ""))
          << good.prefix << " at " << i;
    }
  }
}

TEST(Recorded, CosignsBareRepositoryNeedsMatchRepository) {
  for (const Type type : {Type::matchExact, Type::matchRepoDigestOrExact}) {
    EXPECT_THAT(evaluate(signed_rule(type), docker("127.0.0.1:5055/rasos/os"),
                         facts({kIndex}, recorded("cosign25-tag/index", kIndex), {real_key("c25.pub")})),
                FailsWith(Kind::Untrusted, "127.0.0.1:5055/rasos/os"));
  }
}

/// Empty `why`: accepted. Where others accept what is refused here, `others` says who.
struct Case {
  const char *name, *why_default, *why_repository, *others;
};

constexpr Case kCases[] = {
    {"good", "", "", ""},
    {"good-trailing-newline", "", "", ""},
    {"extra-optional-member", "", "", ""},
    {"good-norepo-tag", "without a tag", "", "cosign"},
    {"other-repo", "it was signed as", "it was signed as", "cosign"},
    {"other-digest", "another digest", "another digest", ""},
    {"digest-nonalgo", "another digest", "another digest", ""},
    {"digest-sha512-of-manifest", "another digest", "another digest", ""},
    {"dup-digest-key", "duplicate key", "duplicate key", "cosign"},
    {"extra-critical-member", "unknown members", "unknown members", "cosign"},
    {"extra-toplevel-member", "unknown members", "unknown members", "cosign"},
    {"type-bogus", "type \"x\"", "type \"x\"", "cosign"},
    {"trailing-json", "not valid JSON", "not valid JSON", ""},
    {"sig-missing", "no signature annotation", "no signature annotation", ""},
    {"wrong-key", "none of the rule's keys", "none of the rule's keys", ""},
    // Go's base64 skips line ends and its verifiers take r||s: one signature, many spellings.
    {"sig-b64-newline", "not base64", "not base64", "cosign skopeo"},
    {"sig-p1363", "none of the rule's keys", "none of the rule's keys", "cosign skopeo"},
};

/// The oracle's row: case, skopeo 1.22 default, skopeo 1.22 matchRepository, skopeo 1.18, cosign 2.5,
/// cosign 3.1.
std::vector<std::string> oracle(const std::string& name) {
  for (const auto& line : split(fixture("signing/negative/oracle.tsv"), '\n')) {
    auto fields = split(line, '\t');
    if (fields.size() == 6 && fields[0] == name) return fields;
  }
  ADD_FAILURE() << "the oracle has no row " << name;
  return std::vector<std::string>(6);
}

Result<Accepted> evaluate_negative(const Case& c, const std::string& arch, Type type) {
  const std::string subject = arch == "idx" ? kIndex : kAmd64;
  return evaluate(signed_rule(type), docker(std::string("127.0.0.1:5055/neg/") + c.name),
                  facts({kAmd64, kIndex}, recorded(std::string("negative/") + c.name + "." + arch, subject),
                        {real_key("p256.pub")}));
}

TEST(Negative, EveryOneIsJudgedAndForItsReason) {
  for (const Case& c : kCases) {
    for (const char* arch : {"idx", "amd64"}) {
      for (const auto& [type, why] : {std::pair{Type::matchRepoDigestOrExact, c.why_default},
                                      {Type::matchRepository, c.why_repository}}) {
        const auto accepted = evaluate_negative(c, arch, type);
        if (*why == '\0') {
          EXPECT_THAT(accepted, Succeeds()) << c.name << " " << arch;
        } else {
          EXPECT_THAT(accepted, FailsWith(Kind::Untrusted, why)) << c.name << " " << arch;
        }
      }
    }
  }
}

TEST(Negative, NothingIsTakenThatSkopeoRefuses) {
  for (const Case& c : kCases) {
    const auto row = oracle(c.name);
    EXPECT_TRUE(*c.why_default != '\0' || row[1] == "ACCEPT") << c.name;
    EXPECT_TRUE(*c.why_repository != '\0' || row[2] == "ACCEPT") << c.name;
  }
}

// R118: what is refused here although others take it, recorded so that it stays a decision.
TEST(Negative, WhereWeAreStricterThanOthers) {
  for (const Case& c : kCases) {
    const auto row = oracle(c.name);
    const std::string others = c.others;
    const bool refused = *c.why_default != '\0';
    EXPECT_EQ(refused && row[1] == "ACCEPT", others.find("skopeo") != std::string::npos) << c.name;
    EXPECT_EQ(refused && row[4] == "ACCEPT", others.find("cosign") != std::string::npos) << c.name;
  }
}

TEST(Negative, TheTableIsTheWholeOracle) {
  std::size_t rows = 0;
  for (const auto& line : split(fixture("signing/negative/oracle.tsv"), '\n')) rows += line.empty() ? 0 : 1;
  EXPECT_EQ(rows, std::size(kCases) + 1);
}

}  // namespace
}  // namespace rasupd::policy
