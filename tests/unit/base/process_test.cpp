// SystemRunner on real programs: output, exit codes, time-outs, and children that do not end as one hopes.

#include "base/process.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace rasupd {
namespace {

using namespace std::chrono_literals;
using Milliseconds = std::chrono::milliseconds;

struct Timed {
  Result<Outcome> outcome;
  Milliseconds took;
};

Timed run(const std::string& script, Milliseconds timeout = 10s) {
  std::stop_source stop;
  SystemRunner runner(stop.get_token());
  const auto begin = std::chrono::steady_clock::now();
  auto outcome = runner.run({"sh", "-c", script}, RunLimits{.timeout = timeout});
  return {std::move(outcome),
          std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - begin)};
}

TEST(ProcessTest, OutputAndExitCode) {
  const Timed done = run("echo out; echo err >&2; exit 3");
  ASSERT_TRUE(done.outcome);
  EXPECT_EQ(done.outcome->exit_code, 3);
  EXPECT_EQ(done.outcome->out, "out\n");
  EXPECT_EQ(done.outcome->err, "err\n");
  EXPECT_EQ(run("kill -9 $$").outcome->exit_code, 137);
}

TEST(ProcessTest, ATimeOutEndsTheWholeGroup) {
  char name[] = "/tmp/rasupd-process-XXXXXX";
  const std::filesystem::path folder = ::mkdtemp(name);
  const Timed done = run("sh -c 'sleep 60; true' & echo $! >" + (folder / "pid").string() + "; wait", 300ms);
  ASSERT_FALSE(done.outcome);
  EXPECT_EQ(done.outcome.error().kind, Kind::Failed);
  EXPECT_LT(done.took, 5s);
  pid_t grandchild = 0;
  std::ifstream(folder / "pid") >> grandchild;
  ASSERT_GT(grandchild, 1);
  // An orphan that was killed may wait for its new parent for a moment.
  bool alive = true;
  for (int i = 0; i < 100 && alive; ++i) {
    std::this_thread::sleep_for(20ms);
    std::ifstream status("/proc/" + std::to_string(grandchild) + "/stat");
    std::string text((std::istreambuf_iterator<char>(status)), {});
    alive = !text.empty() && text.find(") Z ") == std::string::npos;
  }
  EXPECT_FALSE(alive);
  std::filesystem::remove_all(folder);
}

TEST(ProcessTest, AChildThatClosesItsOutputIsStillTimed) {
  const Timed done = run("exec >&- 2>&-; sleep 60", 300ms);
  EXPECT_FALSE(done.outcome);
  EXPECT_LT(done.took, 5s);
  EXPECT_EQ(run("exec >&- 2>&-; sleep 0.3; exit 4").outcome->exit_code, 4);
}

TEST(ProcessTest, SomethingInTheBackgroundIsNotWaitedFor) {
  const Timed quiet = run("echo done; sleep 20 &");
  ASSERT_TRUE(quiet.outcome);
  EXPECT_EQ(quiet.outcome->out, "done\n");
  EXPECT_LT(quiet.took, 5s);
  const Timed chatty = run("(for i in $(seq 40); do echo noise; sleep 0.1; done) & exit 5");
  ASSERT_TRUE(chatty.outcome);
  EXPECT_EQ(chatty.outcome->exit_code, 5);
  EXPECT_LT(chatty.took, 3s);
}

TEST(ProcessTest, AFileThatTheKernelRefusesIsNotGivenToAShell) {
  char name[] = "/tmp/rasupd-process-XXXXXX";
  const std::filesystem::path folder = ::mkdtemp(name);
  const std::string path = folder / "empty";
  std::ofstream(path).close();
  ::chmod(path.c_str(), 0755);
  std::stop_source stop;
  SystemRunner runner(stop.get_token());
  const auto done = runner.run({path}, RunLimits{});
  EXPECT_FALSE(done);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace rasupd
