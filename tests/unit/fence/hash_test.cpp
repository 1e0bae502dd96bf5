#include "fence/hash.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace rasupd {
namespace {

// FIPS 180-4's own examples.
constexpr char kEmpty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr char kAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256_hex({}), kEmpty);
  EXPECT_EQ(sha256_hex(as_bytes("abc")), kAbc);
}

TEST(Sha256, PiecesAreOneMessageAndFinishStartsAnew) {
  Sha256 hash;
  hash.update(as_bytes("a"));
  hash.update({});
  hash.update(as_bytes("bc"));
  EXPECT_EQ(hash.finish_hex(), kAbc);
  EXPECT_EQ(hash.finish_hex(), kEmpty);
}

TEST(Sha256, MovesWithItsState) {
  Sha256 hash;
  hash.update(as_bytes("ab"));
  Sha256 other = std::move(hash);
  other.update(as_bytes("c"));
  EXPECT_EQ(other.finish_hex(), kAbc);
}

}  // namespace
}  // namespace rasupd
