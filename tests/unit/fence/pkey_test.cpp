#include "fence/pkey.hpp"

#include <gmock/gmock.h>

#include "base/text.hpp"
#include "support/fixture.hpp"

namespace rasupd {
namespace {

using test::FailsWith;
using test::fixture;

PublicKey key(const std::string& path) {
  auto parsed = PublicKey::parse_pem(fixture("signing/" + path));
  EXPECT_TRUE(parsed.has_value()) << path << ": " << parsed.error().message;
  return *parsed;
}

std::string made(const std::string& name) {
  return fixture("signing/made/" + name);
}

/// r and s of a DER signature as fixed-width halves: the other spelling of ECDSA (IEEE P1363).
std::string as_p1363(const std::string& der) {
  std::string out;
  std::size_t at = 2;
  for (int i = 0; i < 2; ++i) {
    const auto length = static_cast<std::size_t>(der[at + 1]);
    std::string integer = der.substr(at + 2, length);
    while (integer.size() > 32) integer.erase(0, 1);
    out += std::string(32 - integer.size(), '\0') + integer;
    at += 2 + length;
  }
  return out;
}

/// The same numbers, but r with one needless leading zero: what a BER reader takes and DER forbids.
std::string with_padded_r(std::string der) {
  der[1] = static_cast<char>(der[1] + 1);
  der[3] = static_cast<char>(der[3] + 1);
  der.insert(4, 1, '\0');
  return der;
}

/// The same numbers with the sequence's length in the long form.
std::string with_long_length(const std::string& der) {
  return der.substr(0, 1) + '\x81' + der.substr(1);
}

TEST(PublicKey, VerifiesEveryKindItPromises) {
  EXPECT_TRUE(key("made/p256.pub").verify(made("message"), made("p256-sha256.der")));
  EXPECT_TRUE(key("made/rsa2048.pub").verify(made("message"), made("rsa-pkcs1.sig")));
  for (const auto& [pub, name] : {std::pair{"imp-ed", "ed"}, {"imp-rsa", "rsa"}, {"imp-p384", "p384"}}) {
    const std::string base = std::string("signing/keytypes/") + name;
    EXPECT_TRUE(key(std::string("keys/") + pub + ".pub")
                    .verify(fixture(base + ".payload.0.json"), fixture(base + ".sig.0.der")))
        << name;
  }
}

TEST(PublicKey, AnyChangedByteIsRefused) {
  const PublicKey p256 = key("made/p256.pub");
  const std::string message = made("message"), signature = made("p256-sha256.der");
  for (std::size_t i = 0; i < message.size(); ++i) {
    std::string other = message;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_FALSE(p256.verify(other, signature)) << i;
  }
  for (std::size_t i = 0; i < signature.size(); ++i) {
    std::string other = signature;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_FALSE(p256.verify(message, other)) << i;
    EXPECT_FALSE(p256.verify(message, signature.substr(0, i))) << i;
  }
  EXPECT_FALSE(key("keys/p256b.pub").verify(message, signature));
}

TEST(PublicKey, OnlyOneSpellingOfASignature) {
  const PublicKey p256 = key("made/p256.pub");
  const std::string message = made("message"), signature = made("p256-sha256.der");
  EXPECT_FALSE(p256.verify(message, signature + '\0'));
  EXPECT_FALSE(p256.verify(message, signature + signature));
  EXPECT_FALSE(p256.verify(message, with_padded_r(signature)));
  EXPECT_FALSE(p256.verify(message, with_long_length(signature)));
  EXPECT_FALSE(p256.verify(message, as_p1363(signature)));
  EXPECT_FALSE(p256.verify(message, base64_encode(signature)));
  EXPECT_FALSE(p256.verify(message, std::string(100'000, '0')));
}

TEST(PublicKey, OnlySha256AndPkcs1) {
  EXPECT_FALSE(key("made/p256.pub").verify(made("message"), made("p256-sha384.der")));
  EXPECT_FALSE(key("made/p256.pub").verify(made("message"), made("p256-sha1.der")));
  EXPECT_FALSE(key("made/rsa2048.pub").verify(made("message"), made("rsa-pss.sig")));
  // cosign 3.1 signs Ed25519ph in the classic form; nobody else verifies that.
  EXPECT_FALSE(key("keys/imp-ed.pub")
                   .verify(fixture("signing/keytypes/ed-cosign31classic.payload.0.json"),
                           fixture("signing/keytypes/ed-cosign31classic.sig.0.der")));
}

TEST(PublicKey, KeysThatAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"rsa1024.pub", "1024 bits"},   {"p521.pub", "secp521r1"},       {"secp256k1.pub", "secp256k1"},
      {"p256-explicit.pub", "curve"}, {"x25519.pub", "not supported"}, {"rsa-pss-only.pub", "not supported"},
      {"message", "exactly one PEM"},
  };
  for (const auto& [name, why] : cases) {
    EXPECT_THAT(PublicKey::parse_pem(made(name)), FailsWith(Kind::Config, why)) << name;
  }
}

TEST(PublicKey, ExactlyOneBlock) {
  const std::string pem = made("p256.pub");
  EXPECT_TRUE(PublicKey::parse_pem("\n" + pem + "\n").has_value());
  EXPECT_THAT(PublicKey::parse_pem(pem + pem), FailsWith(Kind::Config, "exactly one"));
  EXPECT_THAT(PublicKey::parse_pem("note\n" + pem), FailsWith(Kind::Config, "exactly one"));
  EXPECT_THAT(PublicKey::parse_pem(""), FailsWith(Kind::Config, "exactly one"));
  EXPECT_THAT(PublicKey::parse_pem(pem + std::string(20'000, '\n')), FailsWith(Kind::Config, "exactly one"));
  std::string torn = pem;
  torn.erase(torn.find("-----END") - 8, 4);
  EXPECT_THAT(PublicKey::parse_pem(torn), FailsWith(Kind::Config, "does not hold"));
}

TEST(PublicKey, FingerprintIsTheHashOfItsDer) {
  // openssl pkey -pubin -in c25.pub -outform DER | sha256sum
  EXPECT_EQ(key("keys/c25.pub").fingerprint(),
            "c300e6910352f92c5e8cd1cc7e63570a8df3ac3746e91b101c3d77fda94ec87b");
  EXPECT_EQ(key("keys/rekor.pub").fingerprint(),
            "e3345c56c1ac654a6672156ef699d0952b26d17ef27081ed3fe9e38e50353850");
}

}  // namespace
}  // namespace rasupd
