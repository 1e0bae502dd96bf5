// Every row of the two tables: what a boot means for a trial, and what follows from the checks.

#include "policy/verdict.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace rasupd::policy {
namespace {

constexpr const char* kNew = "new.0";
constexpr const char* kOld = "old.0";
constexpr const char* kThird = "third.0";

/// The new one is on trial by a bootloader that counts, first, and runs.
BootFacts on_trial() {
  BootFacts f;
  f.trial = PendingTrial{kNew, 3, 0, false, ""};
  f.booted = f.first = kNew;
  f.good = kOld;
  f.counter = CounterFacts{kNew, 2};
  f.counts = Counts::tries;
  return f;
}

/// The same, but the old one runs.
BootFacts beside(unsigned left) {
  BootFacts f = on_trial();
  f.booted = kOld;
  f.counter->left = left;
  return f;
}

/// No trial anywhere.
BootFacts quiet() {
  BootFacts f;
  f.booted = f.first = f.good = kOld;
  f.counts = Counts::tries;
  return f;
}

struct Row {
  const char* what;
  BootFacts facts;
  AtBoot action;
  std::string reason = "";
  bool count = false;
};

BootFacts with(BootFacts facts, const std::function<void(BootFacts&)>& change) {
  change(facts);
  return facts;
}

void hold_all(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const BootVerdict verdict = at_boot(row.facts);
    EXPECT_EQ(static_cast<int>(verdict.action), static_cast<int>(row.action)) << row.what;
    // Why a trial is kept is told to a person, in words that may change.
    const std::string reason =
        verdict.action == AtBoot::keep && !verdict.reason.empty() ? row.reason : verdict.reason;
    EXPECT_EQ(reason, row.reason) << row.what;
    EXPECT_EQ(verdict.action == AtBoot::keep && verdict.reason.empty(), false) << row.what;
    EXPECT_EQ(verdict.count, row.count) << row.what;
  }
}

TEST(VerdictTest, WithoutATrial) {
  hold_all({
      {"nothing", quiet(), AtBoot::nothing},
      {"a counter for what is first",
       with(quiet(),
            [](auto& f) {
              f.counter = CounterFacts{kOld, 2};
            }),
       AtBoot::clear},
      {"a counter for another",
       with(quiet(),
            [](auto& f) {
              f.counter = CounterFacts{kNew, 0};
            }),
       AtBoot::clear},
      {"unreadable", with(quiet(), [](auto& f) { f.counter_readable = false; }), AtBoot::keep},
      {"a queued rollback", with(quiet(), [](auto& f) { f.booted = kNew; }), AtBoot::nothing},
      {"state unreadable", with(quiet(), [](auto& f) { f.readable = false; }), AtBoot::keep},
      {"entries unreadable", with(quiet(), [](auto& f) { f.first.clear(); }), AtBoot::keep},
  });
}

TEST(VerdictTest, WhatRunsIsOnTrial) {
  hold_all({
      {"first start", on_trial(), AtBoot::on_trial, "", true},
      {"counted", with(on_trial(), [](auto& f) { f.trial->counted = true; }), AtBoot::on_trial},
      {"last start", with(on_trial(), [](auto& f) { f.counter->left = 0; }), AtBoot::on_trial, "", true},
      {"counter unreadable", with(on_trial(), [](auto& f) { f.counter_readable = false; }), AtBoot::on_trial,
       "", true},
      {"counter lost", with(on_trial(), [](auto& f) { f.counter.reset(); }), AtBoot::on_trial, "", true},
      {"another is first", with(on_trial(), [](auto& f) { f.first = kOld; }), AtBoot::on_trial, "", true},
      {"nobody counts", with(on_trial(), [](auto& f) { f.counts = Counts::nothing; }), AtBoot::on_trial, "",
       true},
      {"out of step", with(on_trial(), [](auto& f) { f.in_step = false; }), AtBoot::on_trial, "", true},
      {"recorded as good", with(on_trial(), [](auto& f) { f.good = kNew; }), AtBoot::finish_good},
      {"good beats held", with(on_trial(), [](auto& f) { f.good = kNew, f.trial->held = kBootFailed; }),
       AtBoot::finish_good},
      {"held by a verdict", with(on_trial(), [](auto& f) { f.trial->held = kHealthFailed; }), AtBoot::go_back,
       kHealthFailed},
      {"held by a person", with(on_trial(), [](auto& f) { f.trial->held = kMarkedBad; }), AtBoot::go_back,
       kMarkedBad},
      {"an old rollback does not count", with(on_trial(), [](auto& f) { f.trial->held = "rolled-back"; }),
       AtBoot::on_trial, "", true},
      {"a rollback by hand", with(on_trial(), [](auto& f) { f.trial->held = "rolled-back", f.first = kOld; }),
       AtBoot::forget},
      {"record unreadable", with(on_trial(), [](auto& f) { f.readable = false; }), AtBoot::keep},
  });
}

TEST(VerdictTest, SomethingElseRunsAndTheTrialIsFirst) {
  hold_all({
      {"used up", beside(0), AtBoot::fell_back, kBootFailed},
      {"chosen", beside(2), AtBoot::keep},
      {"a third was chosen", with(beside(1), [](auto& f) { f.booted = kThird; }), AtBoot::keep},
      {"unreadable", with(beside(0), [](auto& f) { f.counter_readable = false; }), AtBoot::keep},
      {"counter lost", with(beside(0), [](auto& f) { f.counter.reset(); }), AtBoot::keep},
      {"only the entries had turned", with(beside(0), [](auto& f) { f.counter.reset(), f.in_step = false; }),
       AtBoot::interrupted},
      {"out of step, but it had run", with(beside(0), [](auto& f) { f.counter.reset(), f.in_step = false, f.trial->starts = 1; }),
       AtBoot::keep},
      {"used up and sorted last", with(beside(0), [](auto& f) { f.in_step = false; }), AtBoot::fell_back, kBootFailed},
      {"counter of another", with(beside(0), [](auto& f) { f.counter->deployment = kThird; }), AtBoot::keep},
      {"a check had failed", with(beside(0), [](auto& f) { f.trial->held = kHealthFailed; }),
       AtBoot::fell_back, kHealthFailed},
      {"it was good", with(beside(0), [](auto& f) { f.good = kNew; }), AtBoot::finish_good},
      {"one start, used", with(beside(0), [](auto& f) { f.counts = Counts::one_start; }), AtBoot::fell_back,
       kBootFailed},
      {"one start, not used", with(beside(1), [](auto& f) { f.counts = Counts::one_start; }), AtBoot::keep},
      {"nobody counts, starts left",
       with(beside(0), [](auto& f) { f.counts = Counts::nothing, f.counter.reset(), f.trial->starts = 2; }),
       AtBoot::keep},
      {"nobody counts, none left",
       with(beside(0), [](auto& f) { f.counts = Counts::nothing, f.counter.reset(), f.trial->starts = 3; }),
       AtBoot::fell_back, kBootFailed},
  });
}

TEST(VerdictTest, NeitherRunsNorIsFirst) {
  const auto away = [](unsigned starts, const char* held) {
    return with(beside(3), [=](auto& f) { f.first = kOld, f.trial->starts = starts, f.trial->held = held; });
  };
  hold_all({
      {"cut before the switch", away(0, ""), AtBoot::interrupted},
      {"switched away by another tool", away(1, ""), AtBoot::forget},
      {"a rollback by hand", away(1, "rolled-back"), AtBoot::forget},
      {"the way back was cut after the entries", away(1, kHealthFailed), AtBoot::fell_back, kHealthFailed},
      {"good in between", with(away(1, ""), [](auto& f) { f.good = kNew; }), AtBoot::finish_good},
  });
}

CheckFacts checked(bool passed) {
  CheckFacts f;
  f.on_trial = true;
  f.passed = passed;
  f.counts = Counts::tries;
  f.left = 1;
  f.tries = 3;
  f.starts = 2;
  return f;
}

void expect(const char* what, CheckFacts facts, const std::function<void(CheckFacts&)>& change,
            AfterChecks wanted) {
  change(facts);
  EXPECT_EQ(static_cast<int>(after_checks(facts)), static_cast<int>(wanted)) << what;
}

TEST(VerdictTest, ChecksOnTrial) {
  const auto same = [](auto&) {};
  expect("passed", checked(true), same, AfterChecks::mark_good);
  expect(
      "passed, external", checked(true), [](auto& f) { f.external = true; }, AfterChecks::wait);
  expect("failed, left", checked(false), same, AfterChecks::reboot);
  expect(
      "failed, external all the same", checked(false), [](auto& f) { f.external = true; },
      AfterChecks::reboot);
  expect(
      "failed, none left", checked(false), [](auto& f) { f.left = 0; }, AfterChecks::go_back);
  expect(
      "the medium is the authority", checked(false), [](auto& f) { f.left = 1, f.starts = 3; },
      AfterChecks::reboot);
  expect(
      "counter lost, own count", checked(false), [](auto& f) { f.left.reset(); }, AfterChecks::reboot);
  expect(
      "counter lost, used up", checked(false), [](auto& f) { f.left.reset(), f.starts = 3; },
      AfterChecks::go_back);
  for (const Counts counts : {Counts::nothing, Counts::one_start}) {
    expect(
        "own count", checked(false), [=](auto& f) { f.counts = counts, f.left = 0; }, AfterChecks::reboot);
    expect(
        "own count, used up", checked(false), [=](auto& f) { f.counts = counts, f.left = 1, f.starts = 3; },
        AfterChecks::go_back);
  }
}

TEST(VerdictTest, ChecksWithoutATrialNeverRebootAndNeverHold) {
  for (const bool other : {false, true}) {
    for (const bool good : {false, true}) {
      for (const bool readable : {false, true}) {
        const auto change = [=](auto& f) {
          f.on_trial = !readable;  // what cannot be read is no trial
          f.other_on_trial = other, f.good_already = good, f.readable = readable;
        };
        expect("failed", checked(false), change, AfterChecks::warn);
        const bool marks = readable && !other && !good;
        expect("passed", checked(true), change, marks ? AfterChecks::mark_good : AfterChecks::nothing);
      }
    }
  }
  expect(
      "external", checked(true), [](auto& f) { f.on_trial = false, f.external = true; },
      AfterChecks::nothing);
  expect(
      "another boots next", checked(true), [](auto& f) { f.on_trial = f.boots_next = false; },
      AfterChecks::nothing);
}

TEST(VerdictTest, OnlyOurReasonsEndATrial) {
  for (const char* reason : {kBootFailed, kHealthFailed, kMarkedBad}) EXPECT_TRUE(ends_a_trial(reason));
  for (const char* reason : {"", "rolled-back", "held"}) EXPECT_FALSE(ends_a_trial(reason));
}

}  // namespace
}  // namespace rasupd::policy
