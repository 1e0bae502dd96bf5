#include "base/files.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "support/fixture.hpp"

namespace rasupd {
namespace {

using test::FailsWith;
using test::Succeeds;
using testing::ElementsAre;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/files.XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string at(const std::string& name) const { return dir_ + "/" + name; }

  std::string dir_;
};

TEST_F(Files, PathsJoinBeneath) {
  EXPECT_EQ(path_join("/a", "b"), "/a/b");
  EXPECT_EQ(path_join("/a/", "/b"), "/a/b");
  EXPECT_EQ(path_join("/", "b"), "/b");
}

TEST_F(Files, MissingIsNotAnErrorButTooLargeIs) {
  EXPECT_EQ(*read_file(at("none"), 10), std::nullopt);
  EXPECT_EQ(*read_file(at("none/none"), 10), std::nullopt);
  ASSERT_THAT(write_file_durably(at("f"), "0123456789", 0600), Succeeds());
  EXPECT_EQ(*read_file(at("f"), 10), "0123456789");
  EXPECT_EQ(*read_file(at("f/x"), 10), std::nullopt);
  EXPECT_THAT(read_file(at("f"), 9, Kind::Config), FailsWith(Kind::Config, "larger than 9"));
  EXPECT_THAT(read_file(dir_, 9, Kind::Config), FailsWith(Kind::Config, "not a regular file"));
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_THAT(read_file(at("pipe"), 9), FailsWith(Kind::Failed, "not a regular file"));
}

TEST_F(Files, ReplacesWholeWithItsModeAndLeavesNothingBeside) {
  ASSERT_THAT(write_file_durably(at("f"), "old", 0600), Succeeds());
  ASSERT_THAT(write_file_durably(at("f"), "new", 0644), Succeeds());
  EXPECT_EQ(*read_file(at("f"), 10), "new");
  struct stat info {};
  ASSERT_EQ(::stat(at("f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0644u);
  EXPECT_THAT(*list_directory(dir_), ElementsAre("f"));
  ASSERT_EQ(::mkdir(at("d").c_str(), 0755), 0);
  EXPECT_THAT(write_file_durably(at("d"), "x", 0600), FailsWith(Kind::Failed, "renaming"));
  EXPECT_THAT(*list_directory(dir_), ElementsAre("d", "f"));
  EXPECT_THAT(write_file_durably(at("none/f"), "x", 0600), FailsWith(Kind::Failed, "creating"));
}

TEST_F(Files, Directories) {
  ASSERT_THAT(make_directories(at("a/b/c"), 0700), Succeeds());
  ASSERT_THAT(make_directories(at("a/b/c"), 0700), Succeeds());
  struct stat info {};
  ASSERT_EQ(::stat(at("a/b/c").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  ASSERT_EQ(::stat(at("a/b").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0755u);
  EXPECT_TRUE(exists(at("a/b")));
  EXPECT_FALSE(exists(at("a/x")));
  EXPECT_TRUE(list_directory(at("none"))->empty());
  EXPECT_THAT(open_directory(at("none")), FailsWith(Kind::Failed, "none"));
}

TEST_F(Files, NothingLeavesTheDirectory) {
  ASSERT_THAT(make_directories(at("in/sub")), Succeeds());
  ASSERT_THAT(write_file_durably(at("secret"), "s", 0600), Succeeds());
  ASSERT_THAT(write_file_durably(at("in/sub/f"), "f", 0600), Succeeds());
  ASSERT_EQ(::symlink("../secret", at("in/out").c_str()), 0);
  ASSERT_EQ(::symlink("sub", at("in/link").c_str()), 0);
  const auto in = open_directory(at("in"));
  ASSERT_THAT(in, Succeeds());
  EXPECT_THAT(open_beneath(in->get(), "sub/f", O_RDONLY), Succeeds());
  for (const char* path : {"../secret", "out", "link/f", "sub/../../secret", "/etc/passwd"}) {
    EXPECT_FALSE(open_beneath(in->get(), path, O_RDONLY).has_value()) << path;
  }
}

}  // namespace
}  // namespace rasupd
