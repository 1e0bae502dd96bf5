#include "deploy/kargs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace rasupd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class KargsFolder : public testing::Test {
 protected:
  KargsFolder() {
    char name[] = "/tmp/rasupd-kargs-XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~KargsFolder() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = root_ + "/" + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  std::string root_;
};

Result<std::vector<std::string>> parse(std::string_view text, std::string_view architecture = "amd64") {
  return parse_kargs_toml(text, "10-x.toml", architecture);
}

TEST(KargsToml, ReadsTheList) {
  EXPECT_THAT(*parse("kargs = [\"quiet\", \"console=ttyS0,115200n8\"]\n"),
              ElementsAre("quiet", "console=ttyS0,115200n8"));
}

TEST(KargsToml, SplitsAtSpacesOutsideQuotes) {
  EXPECT_THAT(*parse("kargs = ['a  b=1', 'dyndbg=\"file x +p\"']"),
              ElementsAre("a", "b=1", "dyndbg=\"file x +p\""));
}

TEST(KargsToml, ArchitecturesFilterInEverySpelling) {
  for (const char* ours : {"amd64", "x86_64"}) {
    EXPECT_THAT(*parse("kargs=['k']\nmatch-architectures=['x86_64']", ours), ElementsAre("k"));
    EXPECT_THAT(*parse("kargs=['k']\nmatch-architectures=['arm64','amd64']", ours), ElementsAre("k"));
    EXPECT_THAT(*parse("kargs=['k']\nmatch-architectures=['aarch64']", ours), IsEmpty());
    EXPECT_THAT(*parse("kargs=['k']\nmatch-architectures=[]", ours), IsEmpty());
  }
  EXPECT_THAT(*parse("kargs=['k']\nmatch-architectures=['aarch64']", "arm64"), ElementsAre("k"));
}

TEST(KargsToml, RefusesWhatIsNotTheFormat) {
  const std::pair<const char*, const char*> cases[] = {
      {"kargs = [\"a\"]\nkarg = 1", "unknown key `karg`"},
      {"kargs = \"a\"", "not an array of strings"},
      {"kargs = [1]", "not an array of strings"},
      {"kargs = ['a']\nmatch-architectures = 'x86_64'", "not an array of strings"},
      {"match-architectures = ['x86_64']", "no `kargs`"},
      {"kargs = [", "line 1"},
      {"kargs = [\"a\\nlinux /evil\"]", "control character"},
      {"kargs = [\"\"]", "empty kernel argument"},
      {"kargs = ['a=\"b']", "unclosed quote"},
      {"kargs = ['quiet ostree=/x']", "ostree="},
  };
  for (const auto& [text, why] : cases) {
    const auto parsed = parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().kind, Kind::Unsuitable);
    EXPECT_THAT(parsed.error().message, HasSubstr(why));
    EXPECT_THAT(parsed.error().message, HasSubstr("10-x.toml"));
  }
}

TEST_F(KargsFolder, BothFoldersByFileName) {
  put("usr/lib/bootc/kargs.d/20-b.toml", "kargs=['b']");
  put("usr/lib/bootc/kargs.d/10-a.toml", "kargs=['bootc']");
  put("usr/lib/rasupd/kargs.d/10-a.toml", "kargs=['ours']");
  put("usr/lib/rasupd/kargs.d/15-c.toml", "kargs=['c']");
  put("usr/lib/rasupd/kargs.d/README", "not toml");
  EXPECT_THAT(*read_kargs_d(root_, "amd64"), ElementsAre("bootc", "ours", "c", "b"));
}

TEST_F(KargsFolder, NoFolderIsNoArguments) {
  EXPECT_THAT(*read_kargs_d(root_, "amd64"), IsEmpty());
}

TEST_F(KargsFolder, AnErrorNamesTheFile) {
  put("usr/lib/rasupd/kargs.d/bad.toml", "kargs=3");
  const auto read = read_kargs_d(root_, "amd64");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, Kind::Unsuitable);
  EXPECT_THAT(read.error().message, HasSubstr("/usr/lib/rasupd/kargs.d/bad.toml"));
}

TEST_F(KargsFolder, AFileOutsideIsNeverRead) {
  put("secret", "kargs=['leaked']");
  std::filesystem::create_directories(root_ + "/image/usr/lib/bootc");
  std::filesystem::create_directories(root_ + "/image/usr/lib/rasupd/kargs.d");
  std::filesystem::create_symlink(root_ + "/secret", root_ + "/image/usr/lib/rasupd/kargs.d/x.toml");
  EXPECT_FALSE(read_kargs_d(root_ + "/image", "amd64"));
}

TEST_F(KargsFolder, TooLargeIsRefused) {
  put("usr/lib/bootc/kargs.d/x.toml", "kargs=['a']\n#" + std::string(70'000, 'x'));
  EXPECT_FALSE(read_kargs_d(root_, "amd64"));
}

TEST(MergeKargs, AdditionChangeAndRemoval) {
  EXPECT_THAT(merge_kargs({"root=LABEL=x", "quiet"}, {"quiet"}, {"quiet", "panic=10"}),
              ElementsAre("root=LABEL=x", "quiet", "panic=10"));
  EXPECT_THAT(merge_kargs({"rw", "panic=10", "local"}, {"panic=10"}, {"panic=20"}),
              ElementsAre("rw", "local", "panic=20"));
  EXPECT_THAT(merge_kargs({"rw", "a", "b", "local"}, {"a", "b"}, {"b"}), ElementsAre("rw", "b", "local"));
}

TEST(MergeKargs, TheWholeFolderRemoved) {
  EXPECT_THAT(merge_kargs({"rw", "a", "b"}, {"a", "b"}, {}), ElementsAre("rw"));
}

TEST(MergeKargs, UnchangedImageChangesNothing) {
  EXPECT_THAT(merge_kargs({"b", "rw", "a", "a"}, {"a", "b"}, {"b", "a"}), ElementsAre("b", "rw", "a", "a"));
}

TEST(MergeKargs, LocalArgumentsStayAndLocalRemovalStays) {
  EXPECT_THAT(merge_kargs({"rw", "mine=1"}, {"quiet"}, {"quiet"}),
              ElementsAre("rw", "mine=1"));  // `quiet` was deleted here
  EXPECT_THAT(merge_kargs({"rw"}, {"gone"}, {}), ElementsAre("rw"));
}

TEST(MergeKargs, AnEqualLocalArgumentSurvivesTheImages) {
  EXPECT_THAT(merge_kargs({"console=tty0", "rw", "console=tty0"}, {"console=tty0"}, {}),
              ElementsAre("console=tty0", "rw"));
  EXPECT_THAT(merge_kargs({"console=tty0"}, {}, {"console=tty0"}),
              ElementsAre("console=tty0", "console=tty0"));
}

TEST(MergeKargs, RepeatedArgumentsCount) {
  EXPECT_THAT(merge_kargs({"a", "a", "x"}, {"a", "a"}, {"a"}), ElementsAre("a", "x"));
  EXPECT_THAT(merge_kargs({"a"}, {"a"}, {"a", "a"}), ElementsAre("a", "a"));
}

}  // namespace
}  // namespace rasupd
