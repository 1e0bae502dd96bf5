// Which checks run, in which order, and what becomes of those that fail, hang or talk too much.

#include "health/checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/process.hpp"
#include "fakes/fakes.hpp"
#include "health/last_run.hpp"
#include "health/motd.hpp"

namespace rasupd {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ChecksTest : public testing::Test {
 protected:
  ChecksTest() {
    char name[] = "/tmp/rasupd-health-XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~ChecksTest() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& script = "exit 0", unsigned mode = 0755) {
    const fs::path file = root_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "#!/bin/sh\n" << script << "\n";
    ::chmod(file.c_str(), mode);
  }

  std::vector<std::string> found() {
    const auto checks = find_checks(root_);
    EXPECT_TRUE(checks);
    std::vector<std::string> out;
    for (const Check& check : *checks) {
      out.push_back((check.required ? "R " : "W ") + fs::path(check.path).lexically_relative(root_).string());
    }
    return out;
  }

  std::vector<CheckResult> run(CheckLimits limits = {5s, 10s}) {
    SystemRunner runner(stop_.get_token());
    World world{"/", root_, clock_, runner, progress_, stop_.get_token()};
    auto results = run_checks(world, find_checks(root_).value(), limits);
    EXPECT_TRUE(results) << results.error().message;
    return results.value_or(std::vector<CheckResult>{});
  }

  fs::path root_;
  fakes::FakeClock clock_;
  fakes::NullProgress progress_;
  std::stop_source stop_;
};

constexpr const char* kUsr = "usr/lib/rasupd/health.d/";
constexpr const char* kEtc = "etc/rasupd/health.d/";

TEST_F(ChecksTest, NoneAtAllPasses) {
  EXPECT_TRUE(all_required_passed(run()));
  EXPECT_TRUE(found().empty());
}

TEST_F(ChecksTest, RequiredFirstThenByNameOverAllDirectories) {
  put(kUsr + std::string("wanted.d/05-w"));
  put(kUsr + std::string("required.d/20-b"));
  put(kEtc + std::string("required.d/10-a"));
  put("usr/lib/greenboot/check/required.d/15-green");
  put("etc/greenboot/check/wanted.d/90-green");
  EXPECT_THAT(
      found(),
      ElementsAre("R etc/rasupd/health.d/required.d/10-a", "R usr/lib/greenboot/check/required.d/15-green",
                  "R usr/lib/rasupd/health.d/required.d/20-b", "W usr/lib/rasupd/health.d/wanted.d/05-w",
                  "W etc/greenboot/check/wanted.d/90-green"));
}

TEST_F(ChecksTest, EtcMasksUsrAndNullMasksAltogether) {
  put(kUsr + std::string("required.d/10-a"));
  put(kEtc + std::string("required.d/10-a"));
  put(kUsr + std::string("required.d/20-b"));
  fs::create_symlink("/dev/null", root_ / (kEtc + std::string("required.d/20-b")));
  put(kUsr + std::string("required.d/30-c"));
  put(kEtc + std::string("required.d/30-c"), "exit 0", 0644);
  put(kUsr + std::string("required.d/README"), "", 0644);
  fs::create_directories(root_ / (kUsr + std::string("required.d/40-folder")));
  EXPECT_THAT(found(), ElementsAre("R etc/rasupd/health.d/required.d/10-a"));
}

TEST_F(ChecksTest, ExitCodesAndWhatWasSaid) {
  put(kEtc + std::string("required.d/10-ok"), "echo fine");
  put(kEtc + std::string("required.d/20-bad"), "echo first; echo 'last words' >&2; exit 3");
  put(kEtc + std::string("wanted.d/30-wanted"), "exit 1");
  const auto results = run();
  ASSERT_EQ(results.size(), 3u);
  EXPECT_TRUE(results[0].passed());
  EXPECT_EQ(results[0].detail, "fine");
  EXPECT_EQ(results[1].outcome, CheckOutcome::failed);
  EXPECT_EQ(results[1].detail, "exit 3: last words");
  EXPECT_FALSE(all_required_passed(results));
  EXPECT_EQ(failed_names(results, true), "20-bad");
  EXPECT_EQ(failed_names(results, false), "30-wanted");
}

TEST_F(ChecksTest, AWantedFailureIsNoFailure) {
  put(kEtc + std::string("wanted.d/30-wanted"), "exit 1");
  EXPECT_TRUE(all_required_passed(run()));
}

TEST_F(ChecksTest, ControlCharactersDoNotReachTheTerminal) {
  put(kEtc + std::string("required.d/10-rude"), "printf 'a\\033[31mb\\tc\\n'; exit 1");
  EXPECT_EQ(run().at(0).detail, "exit 1: a?[31mb?c");
  for (const std::string& note : progress_.notes()) EXPECT_THAT(note, Not(HasSubstr("\033")));
}

TEST_F(ChecksTest, AFloodOfOutputIsCapped) {
  put(kEtc + std::string("required.d/10-flood"), "head -c 20000000 /dev/zero | tr '\\0' x; exit 1");
  EXPECT_LT(run().at(0).detail.size(), 300u);
}

TEST_F(ChecksTest, AHungCheckIsKilledWithItsChildren) {
  put(kEtc + std::string("required.d/10-hung"),
      "sleep 300 & echo $! >" + (root_ / "pid").string() + "; wait");
  put(kEtc + std::string("required.d/20-after"), "exit 0");
  const auto results = run({300ms, 10s});
  EXPECT_EQ(results.at(0).outcome, CheckOutcome::timed_out);
  EXPECT_LT(results[0].took, 5s);
  EXPECT_TRUE(results.at(1).passed());
  pid_t child = 0;
  std::ifstream(root_ / "pid") >> child;
  ASSERT_GT(child, 1);
  for (int i = 0; i < 100 && ::kill(child, 0) == 0; ++i) std::this_thread::sleep_for(20ms);
  std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
  const std::string text((std::istreambuf_iterator<char>(stat)), {});
  EXPECT_TRUE(text.empty() || text.find(") Z ") != std::string::npos) << text;
}

TEST_F(ChecksTest, WhatTheDeadlineLeavesOutHasFailed) {
  put(kEtc + std::string("required.d/10-slow"), "sleep 300");
  put(kEtc + std::string("required.d/20-late"));
  put(kEtc + std::string("wanted.d/30-late"));
  const auto results = run({5s, 300ms});
  EXPECT_EQ(results.at(0).outcome, CheckOutcome::timed_out);
  EXPECT_EQ(results.at(1).outcome, CheckOutcome::not_run);
  EXPECT_EQ(results.at(2).outcome, CheckOutcome::not_run);
  EXPECT_EQ(failed_names(results, true), "10-slow, 20-late");
}

TEST_F(ChecksTest, ASlowCheckWithinItsTimePasses) {
  put(kEtc + std::string("required.d/10-slow"), "sleep 0.4");
  const auto results = run({5s, 10s});
  EXPECT_TRUE(results.at(0).passed());
  EXPECT_GE(results[0].took, 400ms);
}

TEST_F(ChecksTest, WhatCannotBeExecutedHasFailed) {
  for (const char* content : {"",
                              "\x7f"
                              "ELF but not really",
                              "#!/nowhere/interpreter\n"}) {
    const fs::path file = root_ / (kEtc + std::string("required.d/10-odd"));
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::trunc) << content;
    ::chmod(file.c_str(), 0755);
    EXPECT_EQ(run().at(0).outcome, CheckOutcome::failed) << content;
  }
}

TEST_F(ChecksTest, AStopIsNoVerdict) {
  put(kEtc + std::string("required.d/10-slow"), "sleep 300");
  SystemRunner runner(stop_.get_token());
  World world{"/", root_, clock_, runner, progress_, stop_.get_token()};
  std::thread later([this] {
    std::this_thread::sleep_for(200ms);
    stop_.request_stop();
  });
  const auto results = run_checks(world, find_checks(root_).value(), {5s, 10s});
  later.join();
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().kind, Kind::Cancelled);
}

TEST_F(ChecksTest, ADirectoryThatCannotBeReadIsAnError) {
  fs::create_directories(root_ / "etc/rasupd/health.d");
  fs::create_symlink("required.d", root_ / "etc/rasupd/health.d/required.d");  // a loop
  EXPECT_FALSE(find_checks(root_));
}

TEST_F(ChecksTest, TheLastRunIsReadBackAsItWas) {
  put(kEtc + std::string("required.d/10-ok"), "echo fine");
  put(kEtc + std::string("wanted.d/20-bad"), "exit 1");
  LastRun run_record{RunState::failed, "2026-01-01T00:00:00Z", 12, run()};
  ASSERT_TRUE(write_last_run(root_ / "run/rasupd", run_record));
  const auto back = read_last_run(root_ / "run/rasupd");
  ASSERT_TRUE(back && *back);
  EXPECT_EQ((*back)->state, RunState::failed);
  EXPECT_EQ((*back)->uptime, 12);
  ASSERT_EQ((*back)->results.size(), 2u);
  EXPECT_EQ((*back)->results[0].detail, "fine");
  EXPECT_FALSE((*back)->results[1].check.required);
  EXPECT_FALSE(read_last_run(root_ / "elsewhere").value());
  std::ofstream(root_ / "run/rasupd/health") << "{\"state\": \"odd\"}";
  EXPECT_FALSE(read_last_run(root_ / "run/rasupd"));
}

TEST(UptimeTest, CountsFromTheFirstProcess) {
  const auto now = since_start();
  ASSERT_TRUE(now);
  EXPECT_GT(*now, 0);
  EXPECT_LT(*now, 10.0 * 365 * 86400);
}

TEST(MotdTest, TellsOnlyOfATrialThatEndedBadly) {
  EXPECT_EQ(motd_text(std::nullopt), "");
  JournalEvent event{"mark-good", "2026-01-01T00:00:00Z", "health", "ok", "sha256:ab", ""};
  EXPECT_EQ(motd_text(event), "");
  event.event = "rollback";
  event.error = "boot-failed: 3 starts\033[0m";
  const std::string text = motd_text(event);
  for (const char* word : {"did not come up", "sha256:ab", "boot-failed: 3 starts", "--retry-held"}) {
    EXPECT_THAT(text, HasSubstr(word));
  }
  EXPECT_THAT(text, Not(HasSubstr("\033")));
}

}  // namespace
}  // namespace rasupd
