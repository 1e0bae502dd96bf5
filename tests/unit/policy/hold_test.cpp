#include "policy/hold.hpp"

#include <gtest/gtest.h>

namespace rasupd::policy {
namespace {

HoldFacts offered(const char* digest, const char* version) {
  HoldFacts facts;
  facts.digest = digest;
  facts.version = version;
  facts.held_digests = {"sha256:bad", "sha256:left"};
  facts.held_reasons = {"health", "rolled-back"};
  facts.floor = "2.0";
  return facts;
}

TEST(Hold, ANewerImageIsTaken) {
  const auto taken = may_take(offered("sha256:new", "2.1"));
  ASSERT_TRUE(taken);
  EXPECT_TRUE(taken->empty());
}

TEST(Hold, TheFloorItselfIsTaken) { EXPECT_TRUE(may_take(offered("sha256:new", "2.0"))); }

TEST(Hold, AHeldDigestIsRefusedWithItsReason) {
  const auto taken = may_take(offered("sha256:left", "2.1"));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().kind, Kind::Held);
  EXPECT_EQ(taken.error().reason, "rolled-back");
}

TEST(Hold, RetryHeldLiftsOnlyTheHold) {
  HoldFacts facts = offered("sha256:bad", "2.1");
  facts.retry_held = true;
  EXPECT_TRUE(may_take(facts));
  facts.version = "1.9";
  ASSERT_FALSE(may_take(facts));
  EXPECT_EQ(may_take(facts).error().reason, "downgrade");
}

TEST(Hold, AnOlderVersionIsADowngradeUnlessAllowed) {
  HoldFacts facts = offered("sha256:new", "1.10");
  ASSERT_FALSE(may_take(facts));
  EXPECT_EQ(may_take(facts).error().kind, Kind::Held);
  facts.allow_downgrade = true;
  EXPECT_TRUE(may_take(facts));
  facts.digest = "sha256:bad";
  EXPECT_FALSE(may_take(facts));
}

TEST(Hold, WithoutAVersionThereIsAWarningAndNoFloor) {
  const auto taken = may_take(offered("sha256:new", ""));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->size(), 1u);
}

}  // namespace
}  // namespace rasupd::policy
