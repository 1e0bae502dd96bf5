#include "state/state_dir.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rasupd {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class StateTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "rasupd-state-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    dir_ = (root_ / "var/lib/rasupd").string();
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string content(const char* file) {
    std::ostringstream out;
    out << std::ifstream(fs::path(dir_) / file).rdbuf();
    return out.str();
  }
  void write(const char* file, const std::string& text) {
    fs::create_directories(dir_);
    std::ofstream(fs::path(dir_) / file) << text;
  }

  fs::path root_;
  std::string dir_;
};

JournalEvent event(const std::string& verb, const std::string& result, const std::string& error = "") {
  return {"attempt", "2026-01-02T03:04:05Z", verb, result, "sha256:aa", error};
}

TEST_F(StateTest, DirectoryBelongsToTheSysroot) {
  EXPECT_EQ(state_directory("/", true, "default"), "/var/lib/rasupd");
  EXPECT_EQ(state_directory("/mnt", false, "os"), "/mnt/ostree/deploy/os/var/lib/rasupd");
}

TEST_F(StateTest, JournalKeepsTheNewestEventOfEachName) {
  ASSERT_TRUE(append_journal(dir_, event("upgrade", "ok")));
  JournalEvent finalize = event("finalize", "failed", "NoSpace: /boot is full");
  finalize.event = "finalize";
  ASSERT_TRUE(append_journal(dir_, finalize));
  ASSERT_TRUE(append_journal(dir_, event("switch", "failed", "Offline: \"quoted\"\nline")));
  const auto attempt = last_event(dir_, "attempt");
  ASSERT_TRUE(attempt && *attempt);
  EXPECT_EQ((*attempt)->verb, "switch");
  EXPECT_EQ((*attempt)->error, "Offline: \"quoted\"\nline");
  const auto last = last_event(dir_, "finalize");
  ASSERT_TRUE(last && *last);
  EXPECT_EQ((*last)->error, "NoSpace: /boot is full");
  EXPECT_EQ(fs::status(dir_).permissions(), fs::perms::owner_all);
}

TEST_F(StateTest, ATornLastLineIsPassedOverAndDoesNotSwallowTheNext) {
  ASSERT_TRUE(append_journal(dir_, event("upgrade", "ok")));
  std::ofstream(fs::path(dir_) / "journal", std::ios::app) << "{\"v\":1,\"event\":\"att";
  EXPECT_EQ(last_event(dir_, "attempt").value()->verb, "upgrade");
  ASSERT_TRUE(append_journal(dir_, event("switch", "ok")));
  EXPECT_EQ(last_event(dir_, "attempt").value()->verb, "switch");
}

TEST_F(StateTest, TheJournalDoesNotGrowWithoutBound) {
  ASSERT_TRUE(append_journal(dir_, event("first", "ok")));
  std::ofstream(fs::path(dir_) / "journal", std::ios::app) << std::string(600u << 10, '\n');
  ASSERT_TRUE(append_journal(dir_, event("upgrade", "ok")));
  EXPECT_LT(fs::file_size(fs::path(dir_) / "journal"), 400u << 10);
  EXPECT_EQ(last_event(dir_, "attempt").value()->verb, "upgrade");
}

TEST_F(StateTest, AnEmptyMachineRemembersNothing) {
  EXPECT_FALSE(last_event(dir_, "attempt").value());
  EXPECT_TRUE(read_held(dir_).value().empty());
  EXPECT_FALSE(read_floor(dir_, "a/b").value());
  EXPECT_FALSE(read_role(dir_).value());
}

TEST_F(StateTest, HoldReplacesAndLiftRemoves) {
  ASSERT_TRUE(hold(dir_, {"sha256:1", "rolled-back", "2026-01-01T00:00:00Z"}));
  ASSERT_TRUE(hold(dir_, {"sha256:2", "health", "2026-01-01T00:00:00Z"}));
  ASSERT_TRUE(hold(dir_, {"sha256:1", "health", "2026-01-02T00:00:00Z"}));
  const auto held = read_held(dir_).value();
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held[1].digest, "sha256:1");
  EXPECT_EQ(held[1].reason, "health");
  EXPECT_TRUE(lift(dir_, "sha256:1").value());
  EXPECT_FALSE(lift(dir_, "sha256:1").value());
  EXPECT_EQ(read_held(dir_).value().size(), 1u);
}

TEST_F(StateTest, FloorIsKeptPerRepository) {
  ASSERT_TRUE(write_floor(dir_, "h/a", "1.2"));
  ASSERT_TRUE(write_floor(dir_, "h/b", "7"));
  ASSERT_TRUE(write_floor(dir_, "h/a", "1.3"));
  EXPECT_EQ(read_floor(dir_, "h/a").value(), "1.3");
  EXPECT_EQ(read_floor(dir_, "h/b").value(), "7");
}

TEST_F(StateTest, ANewerFormatIsRefusedAndKept) {
  write("held", R"({"version": 2, "held": {"different": true}})");
  const auto held = read_held(dir_);
  ASSERT_FALSE(held);
  EXPECT_THAT(held.error().message, HasSubstr("newer"));
  EXPECT_FALSE(hold(dir_, {"sha256:1", "x", "y"}));
  EXPECT_THAT(content("held"), HasSubstr("different"));
}

TEST_F(StateTest, DamagedMemoryIsAnErrorNotAnEmptyMemory) {
  write("held", "{\"version\": 1");
  EXPECT_FALSE(read_held(dir_));
  write("held", "{\"version\": 1, \"held\": {}}");
  EXPECT_FALSE(read_held(dir_));
}

TEST_F(StateTest, TheRoleIsItsMarker) {
  write("role.env", "A=1\n");
  EXPECT_FALSE(read_role(dir_).value());
  write("role.compute", "");
  EXPECT_EQ(read_role(dir_).value(), "compute");
}

}  // namespace
}  // namespace rasupd
