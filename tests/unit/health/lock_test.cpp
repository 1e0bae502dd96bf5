// The lock is waited for, but not for ever, and a held one is no verdict.

#include <gtest/gtest.h>

#include "health/situation.hpp"
#include "support/test_sysroot.hpp"

namespace rasupd {
namespace {

using namespace std::chrono_literals;
using testing_support::TestSysroot;

class LockTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(init_sysroot(sysroot.world(), "default"));
    ASSERT_FALSE(sysroot.deploy(sysroot.commit("1.0"), "1.0").empty());
  }
  TestSysroot sysroot;
};

TEST_F(LockTest, AHeldLockIsBusyAfterTwoMinutes) {
  auto other = LockedHost::lock(sysroot.world());
  ASSERT_TRUE(other);
  const auto mine = LockedHost::lock_patiently(sysroot.world());
  ASSERT_FALSE(mine);
  EXPECT_EQ(mine.error().kind, Kind::Busy);
  std::chrono::milliseconds waited{0};
  for (const auto sleep : sysroot.clock().sleeps()) waited += sleep;
  EXPECT_GE(waited, 110s);
  EXPECT_LE(waited, 130s);
}

TEST_F(LockTest, ALockThatIsReleasedIsTaken) {
  std::optional<Result<LockedHost>> other = LockedHost::lock(sysroot.world());
  ASSERT_TRUE(*other);
  sysroot.clock().on_sleep = [&](std::chrono::milliseconds) { other.reset(); };
  EXPECT_TRUE(LockedHost::lock_patiently(sysroot.world()));
  EXPECT_EQ(sysroot.clock().sleeps().size(), 1u);
}

TEST_F(LockTest, WhatNobodyBootedIsUsage) {
  for (const auto& error : {check_health(sysroot.world(), Settings{}).error(), mark_good(sysroot.world()).error(),
                            mark_bad(sysroot.world(), false).error(),
                            wait_for_deadline(sysroot.world(), Settings{}).error()}) {
    EXPECT_EQ(error.kind, Kind::Usage) << error.message;
  }
  const auto status = health_status(sysroot.world());
  ASSERT_TRUE(status);
  EXPECT_FALSE(status->trial || status->good || status->last_run);
}

}  // namespace
}  // namespace rasupd
