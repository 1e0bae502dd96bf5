#include "policy/trial.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rasupd::policy {
namespace {

using testing::HasSubstr;

TEST(Trial, ArmedWhenTheRunningOneIsGood) {
  const TrialPlan plan = plan_trial({"a.0", {"a.0", "b.0"}, 3});
  EXPECT_EQ(plan.tries, 3u);
  EXPECT_EQ(plan.previous, "a.0");
  EXPECT_EQ(plan.warning, "");
}

TEST(Trial, ComesBackToTheGoodOneNotToTheRunningOne) {
  const TrialPlan plan = plan_trial({"b.0", {"a.0", "b.0"}, 2});
  EXPECT_EQ(plan.tries, 2u);
  EXPECT_EQ(plan.previous, "b.0");
}

TEST(Trial, NoneWithoutAGoodDeployment) {
  const TrialPlan plan = plan_trial({std::nullopt, {"a.0"}, 3});
  EXPECT_EQ(plan.tries, 0u);
  EXPECT_EQ(plan.previous, "a.0");
  EXPECT_THAT(plan.warning, HasSubstr("no deployment was marked good"));
}

TEST(Trial, NoneWhenTheGoodOneIsGone) {
  const TrialPlan plan = plan_trial({"c.1", {"a.0", "b.0"}, 3});
  EXPECT_EQ(plan.tries, 0u);
  EXPECT_EQ(plan.previous, "a.0");
  EXPECT_THAT(plan.warning, HasSubstr("has no boot entry"));
}

TEST(Trial, NothingToComeBackTo) {
  EXPECT_EQ(plan_trial({std::nullopt, {}, 3}).previous, "");
}

}  // namespace
}  // namespace rasupd::policy
