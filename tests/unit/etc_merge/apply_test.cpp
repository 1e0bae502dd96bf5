// What carrying out a plan promises beyond the matrix: nothing outside is written, bytes and attributes
// arrive whole.

#include <gmock/gmock.h>

#include "merge_fixture.hpp"

namespace rasupd::test {
namespace {

using testing::HasSubstr;

class Apply : public MergeTest {
 protected:
  std::string path(const std::string& name) const { return top_ + "/" + name; }
  static struct stat status(const std::string& path) {
    struct stat info {};
    must(::lstat(path.c_str(), &info) == 0, path);
    return info;
  }
  void set_time(const std::string& where, time_t seconds) {
    const struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
    must(::utimensat(AT_FDCWD, where.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0, where);
  }
};

TEST_F(Apply, AVendorSymlinkWithLocalFilesInsideIsAConflictAndNothingIsWritten) {
  write({{"x", dir()}, {"x/a", file("a")}}, {{"x", dir(0700)}, {"x/a", file("l")}, {"x/new", file("l")}},
        {{"x", link(top_ + "/outside")}});
  const auto made = plan();
  ASSERT_TRUE(made);
  ASSERT_EQ(made->conflicts.size(), 1u);
  EXPECT_FALSE(apply(*made));
  expect_outside_untouched();
}

// The plan says "directory" and the tree says "symlink": descriptors, not the plan, keep the write inside.
TEST_F(Apply, ASymlinkThatThePlanDoesNotKnowIsNeverFollowed) {
  for (const bool deep : {false, true}) {
    const std::string below = deep ? "x/y" : "x";
    std::filesystem::remove_all(path("base"));
    std::filesystem::remove_all(path("local"));
    std::filesystem::remove_all(path("vendor"));
    for (const char* folder : {"base", "local", "vendor"}) write_entry(top_, folder, dir());
    fresh_target();
    Tree plain = {{"x", dir()}, {below, dir()}, {below + "/sentinel", file("default")}};
    Tree local = plain;
    local[below + "/sentinel"] = file("local", 0600);
    local[below + "/new"] = file("local");
    write(plain, local, plain);
    const auto made = plan();
    ASSERT_TRUE(made && made->conflicts.empty());
    std::filesystem::remove_all(path("vendor/" + below));
    write_entry(path("vendor"), below, link(top_ + "/outside"));
    EXPECT_FALSE(apply(*made));
    expect_outside_untouched();
  }
}

TEST_F(Apply, AttributesOfASymlinkStayOnTheSymlink) {
  write({{"x", file("b")}}, {{"x", file("b", 0600)}}, {{"x", file("b")}});
  const auto made = plan();
  ASSERT_TRUE(made);
  std::filesystem::remove(path("vendor/x"));
  write_entry(path("vendor"), "x", link(top_ + "/outside/sentinel"));
  (void)apply(*made);
  expect_outside_untouched();
}

TEST_F(Apply, ALocalSymlinkIsCopiedNotRead) {
  write({}, {{"x", link(top_ + "/outside")}, {"y", link(top_ + "/outside/sentinel")}}, {});
  EXPECT_EQ(merged(), (Tree{{"x", link(top_ + "/outside")}, {"y", link(top_ + "/outside/sentinel")}}));
}

TEST_F(Apply, RemovingADirectoryDoesNotFollowLinksInIt) {
  write({{"x", dir()}, {"x/l", link(top_ + "/outside")}}, {},
        {{"x", dir()}, {"x/l", link(top_ + "/outside")}});
  EXPECT_EQ(merged(), Tree());
}

TEST_F(Apply, OddNamesArriveByteForByte) {
  const std::string names[] = {"new\nline",           "\xff\xfe",       "-rf", " ", "*",
                               std::string(255, 'n'), ".rasupd-merge-0"};
  Tree local, expected;
  for (const auto& name : names) local[name] = file(name);
  local["d\xff"] = dir();
  local["d\xff/in\nside"] = file("x");
  write({}, local, {{"vendor", file("v")}});
  expected = local;
  expected["vendor"] = file("v");
  EXPECT_EQ(merged(), expected);
}

TEST_F(Apply, HardLinksBecomeSeparateFilesAndNoneLeadBack) {
  write({}, {{"a", file("same")}}, {{"v", file("v")}});
  must(::link(path("local/a").c_str(), path("local/b").c_str()) == 0, "link");
  merged();
  EXPECT_EQ(status(path("target/a")).st_nlink, 1u);
  EXPECT_NE(status(path("target/a")).st_ino, status(path("target/b")).st_ino);
  EXPECT_NE(status(path("target/a")).st_ino, status(path("local/a")).st_ino);
  EXPECT_NE(status(path("target/v")).st_ino, status(path("vendor/v")).st_ino);
  EXPECT_EQ(read_entry(path("target/b")).data, "same");
}

TEST_F(Apply, ALargeFileArrivesWholeAndItsHolesStay) {
  write({}, {{"big", file("")}, {"full", file(std::string(3'000'001, 'f'))}}, {});
  {
    std::ofstream out(path("local/big"), std::ios::binary);
    out << "head";
    out.seekp(64 << 20);
    out << "tail";
  }
  merged();
  EXPECT_TRUE(read_entry(path("target/big")).data == read_entry(path("local/big")).data);
  EXPECT_TRUE(read_entry(path("target/full")).data == std::string(3'000'001, 'f'));
  EXPECT_LT(status(path("target/big")).st_blocks * 512, 4 << 20);
}

TEST_F(Apply, TimesAreTheVendorsAndTheLocalFilesOwn) {
  write({{"x", file("b")}, {"gone", dir()}},
        {{"x", file("l")}, {"d", dir()}, {"d/f", file("l")}, {"s", link("t")}},
        {{"x", file("b")}, {"v", file("v")}, {"vd", dir()}, {"vd/f", file("v")}});
  for (const char* name : {"local/x", "local/d/f", "local/s", "local/d"}) set_time(path(name), 1'000'000);
  set_time(path("vendor/vd"), 5);
  merged();
  for (const char* name : {"target/x", "target/d/f", "target/s", "target/d"})
    EXPECT_EQ(status(path(name)).st_mtime, 1'000'000) << name;
  EXPECT_EQ(status(path("target/v")).st_mtime, 0);
  EXPECT_EQ(status(path("target/vd")).st_mtime, 5);
}

TEST_F(Apply, TheRootsAttributesMergeToo) {
  write({}, {}, {});
  must(::chmod(path("local").c_str(), 0750) == 0 && ::lchown(path("vendor").c_str(), 5, 6) == 0, "root");
  merged();
  EXPECT_EQ(read_entry(path("target")), dir(0750).with_owner(5, 6));
}

// struct vfs_cap_data, revision 2: CAP_NET_RAW permitted and effective.
const std::string kCapability =
    std::string("\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", 20);

TEST_F(Apply, FileCapabilitiesSurviveCopyAndChown) {
  const Entry capable = file("v", 0755).with_xattr("security.capability", kCapability);
  write({{"x", file("b", 0755)}},
        {{"x", file("b", 0755).with_owner(7, 8)}, {"own", capable.with_owner(9, 9)}}, {{"x", capable}});
  EXPECT_EQ(merged(), (Tree{{"x", capable.with_owner(7, 8)}, {"own", capable.with_owner(9, 9)}}));
}

/// A POSIX ACL as linux/posix_acl_xattr.h has it: version 2, then (tag, permissions, id) each little-endian.
std::string acl(const std::vector<std::array<unsigned, 3>>& entries) {
  std::string bytes("\x02\x00\x00\x00", 4);
  for (const auto& [tag, permissions, id] : entries) {
    for (const unsigned half : {tag, permissions})
      bytes += {static_cast<char>(half), static_cast<char>(half >> 8)};
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(id >> shift);
  }
  return bytes;
}
constexpr unsigned kNoId = 0xffffffff;
const std::string kAcl = acl({{1, 6, kNoId}, {2, 4, 1000}, {4, 4, kNoId}, {16, 4, kNoId}, {32, 4, kNoId}});

TEST_F(Apply, AnAclAddedHereStaysOnTheVendorsNewContent) {
  const Entry listed = file("b", 0644).with_xattr("system.posix_acl_access", kAcl);
  write({{"x", file("b")}}, {{"x", listed}}, {{"x", file("v")}});
  Entry expected = listed;
  expected.data = "v";
  EXPECT_EQ(merged(), (Tree{{"x", expected}}));
}

TEST_F(Apply, ADefaultAclIsNotInheritedByWhatIsCopied) {
  const std::string defaults =
      acl({{1, 7, kNoId}, {2, 7, 1000}, {4, 5, kNoId}, {16, 7, kNoId}, {32, 5, kNoId}});
  write({}, {{"d", dir()}, {"d/f", file("l")}, {"d/sub", dir()}}, {});
  // Set once the children are there, so that on the local side they have none of it.
  must(::lsetxattr(path("local/d").c_str(), "system.posix_acl_default", defaults.data(), defaults.size(),
                   0) == 0,
       "acl");
  const Tree local = read_tree(path("local"));
  ASSERT_TRUE(local.at("d/f").xattrs.empty() && !local.at("d").xattrs.empty());
  EXPECT_EQ(merged(), local);
}

TEST_F(Apply, AFileThatVanishesAfterPlanningIsSkippedAndNoted) {
  write({{"changed", file("b")}},
        {{"changed", file("l")}, {"added", file("l")}, {"d", dir()}, {"d/f", file("l")}, {"z", file("l")}},
        {{"changed", file("v")}});
  const auto made = plan();
  ASSERT_TRUE(made);
  std::filesystem::remove(path("local/changed"));
  std::filesystem::remove(path("local/added"));
  std::filesystem::remove_all(path("local/d"));
  const auto done = apply(*made);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(read_tree(path("target")), (Tree{{"changed", file("v")}, {"d", dir()}, {"z", file("l")}}));
  std::vector<std::string> paths;
  for (const auto& note : *done) paths.push_back(note.path);
  EXPECT_THAT(paths, testing::ElementsAre("added", "changed", "d/f"));
  EXPECT_THAT(done->front().what, HasSubstr("vanished"));
}

TEST_F(Apply, WhatBecameAnotherKindIsCopiedAsItIsNow) {
  write({}, {{"resolv.conf", link("stub")}}, {});
  const auto made = plan();
  ASSERT_TRUE(made);
  std::filesystem::remove(path("local/resolv.conf"));
  write_entry(path("local"), "resolv.conf", file("nameserver", 0640));
  ASSERT_TRUE(apply(*made));
  EXPECT_EQ(read_tree(path("target")), (Tree{{"resolv.conf", file("nameserver", 0640)}}));
}

TEST_F(Apply, AMachinesIdentityIsCarried) {
  const Tree base = {{"machine-id", file("uninitialized\n", 0444)},
                     {"fstab", file("# empty\n")},
                     {"hostname", file("localhost\n")},
                     {"ssh", dir()},
                     {"ssh/sshd_config", file("old\n")}};
  Tree local = base;
  local["machine-id"] = file("0123456789abcdef0123456789abcdef\n", 0444);
  local["fstab"] = file("UUID=1 / ext4\n");
  local["hostname"] = file("node7\n");
  local["ssh/ssh_host_ed25519_key"] = file("private", 0600);
  local[".pwd.lock"] = file("", 0600);
  Tree vendor = base;
  vendor["ssh/sshd_config"] = file("new\n");
  write(base, local, vendor);
  Tree expected = local;
  expected["ssh/sshd_config"] = file("new\n");
  EXPECT_EQ(merged(), expected);
}

TEST_F(Apply, TheUpdateStampIsNotCarried) {
  write({}, {{".updated", file("l")}, {"d", dir()}, {"d/.updated", file("kept")}}, {{".updated", file("v")}});
  EXPECT_EQ(merged(), (Tree{{"d", dir()}, {"d/.updated", file("kept")}}));
}

TEST_F(Apply, ThePlanListsChangesInOrderWithTheirDetail) {
  write({{"a", file("b")}, {"d", dir()}, {"d/x", file("x")}, {"k", file("b")}, {"l", link("1")}},
        {{"a", file("l", 0600).with_owner(1, 1).with_xattr("user.x", "1")},
         {"k", dir()},
         {"k/new", file("n")},
         {"l", link("2")},
         {"n", file("n")}},
        {});
  const auto changes = diff_etc(at("base").get(), at("local").get());
  ASSERT_TRUE(changes);
  std::vector<std::string> lines;
  for (const auto& change : *changes)
    lines.push_back(std::string(1, change.code) + " " + change.path + ": " + change.detail);
  EXPECT_THAT(lines,
              testing::ElementsAre("M a: content, mode 0644 → 0600, owner, xattr user.x", "D d: directory",
                                   "M k: file → directory", "A k/new: file", "M l: target", "A n: file"));
  const auto made = plan();
  ASSERT_TRUE(made);
  EXPECT_EQ(made->changes.size(), changes->size());
}

TEST_F(Apply, EveryConflictIsListedAndNamedInTheError) {
  write({{"a", file("b")}, {"b", file("b")}}, {{"a", file("l")}, {"b", file("l")}},
        {{"a", dir()}, {"b", dir()}});
  const auto made = plan();
  ASSERT_TRUE(made);
  EXPECT_EQ(made->conflicts.size(), 2u);
  const auto applied = apply(*made);
  ASSERT_FALSE(applied);
  EXPECT_THAT(applied.error().message, HasSubstr("2 conflict(s), first a: local file, image directory"));
}

TEST_F(Apply, ATargetThatIsNotEmptyIsRefused) {
  write({}, {}, {{"x", file("v")}});
  write_entry(path("target"), "x", file("foreign"));
  const auto made = plan();
  ASSERT_TRUE(made);
  EXPECT_FALSE(apply(*made));
  EXPECT_EQ(read_entry(path("target/x")).data, "foreign");
}

}  // namespace
}  // namespace rasupd::test
