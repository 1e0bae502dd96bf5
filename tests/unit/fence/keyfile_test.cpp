#include "fence/keyfile.hpp"

#include <gmock/gmock.h>

#include "support/fixture.hpp"

namespace rasupd {
namespace {

using test::FailsWith;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

KeyFile parsed(std::string_view text) {
  auto file = KeyFile::parse(text, "test.conf");
  EXPECT_TRUE(file.has_value());
  return std::move(*file);
}

TEST(KeyFile, ReadsGroupsKeysAndValues) {
  const KeyFile file = parsed("# top\n[a]\nx=1\ny = two words \n\n[b c]\nz=\n");
  EXPECT_THAT(file.groups(), ElementsAre("a", "b c"));
  EXPECT_THAT(file.keys("a"), ElementsAre("x", "y"));
  EXPECT_EQ(file.get("a", "x"), "1");
  EXPECT_EQ(file.get("a", "y"), "two words ");
  EXPECT_EQ(file.get("b c", "z"), "");
  EXPECT_EQ(file.get("a", "z"), std::nullopt);
  EXPECT_EQ(file.get("none", "x"), std::nullopt);
  EXPECT_THAT(file.keys("none"), IsEmpty());
}

TEST(KeyFile, UndoesEscapesAndRefusesBrokenOnes) {
  const KeyFile file = parsed("[a]\ngood=\\sx\\ty\\nz\\\\\nbad=\\q\n");
  EXPECT_EQ(file.get("a", "good"), " x\ty\nz\\");
  EXPECT_EQ(file.get("a", "bad"), std::nullopt);
}

TEST(KeyFile, LaterWinsWithinAFile) {
  EXPECT_EQ(parsed("[a]\nx=1\n[a]\nx=2\n").get("a", "x"), "2");
}

TEST(KeyFile, EmptyTextIsAnEmptyFile) {
  EXPECT_THAT(parsed("").groups(), IsEmpty());
}

TEST(KeyFile, SaysWhatIsNotAKeyFile) {
  EXPECT_THAT(KeyFile::parse("[a]\nwhat is this\n", "etc/x.conf"), FailsWith(Kind::Config, "etc/x.conf: "));
  EXPECT_THAT(KeyFile::parse("[a]\nwhat is this\n", "x"), FailsWith(Kind::Config, "what is this"));
  EXPECT_THAT(KeyFile::parse("x=1\n", "x"), FailsWith(Kind::Config, ""));
  EXPECT_THAT(KeyFile::parse(std::string_view("[a]\nx=1\0\n", 9), "x"), FailsWith(Kind::Config, "NUL"));
}

TEST(KeyFile, ErrorsAreSafeForATerminal) {
  const auto file = KeyFile::parse("[a]\nx\x1b[2J\n", "x");
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().message.find('\x1b'), std::string::npos);
}

TEST(KeyFile, WritesWhatItReads) {
  KeyFile file;
  file.set("origin", "container-image-reference", "ostree-image-signed:docker://h.example/os:1");
  file.set("origin", "odd", " tab\there\nand \\ there");
  const KeyFile again = parsed(file.str());
  EXPECT_EQ(again.get("origin", "container-image-reference"), "ostree-image-signed:docker://h.example/os:1");
  EXPECT_EQ(again.get("origin", "odd"), " tab\there\nand \\ there");
}

TEST(KeyFile, ChangesOneThingAndKeepsTheRest) {
  KeyFile file = parsed("# a comment\n[a]\nx=1\ny=2\nname[de]=Wert\n[b]\nz=3\n");
  file.set("a", "x", "9");
  file.remove("a", "y");
  file.remove_group("b");
  file.remove("none", "none");
  EXPECT_THAT(file.str(), HasSubstr("# a comment"));
  EXPECT_THAT(file.str(), HasSubstr("name[de]=Wert"));
  EXPECT_THAT(file.groups(), ElementsAre("a"));
  EXPECT_EQ(file.get("a", "x"), "9");
  EXPECT_EQ(file.get("a", "y"), std::nullopt);
}

}  // namespace
}  // namespace rasupd
