// What one layer may hold: hostile archives, hardlinks (R108), names, attributes.
#include "kit.hpp"

namespace rasupd::kit {
namespace {

class LayerTest : public ImportTest {
 protected:
  Result<LayerCommit> one(const LayerBytes& layer, std::optional<std::string> diff_id = std::nullopt) {
    Repo repo = open();
    const World w = world();
    RepoWriter writer = TRY(RepoWriter::begin(repo));
    Descriptor descriptor;
    descriptor.media_type = layer.media_type;
    descriptor.digest = Digest::of_hex(sha256_hex(rasupd::as_bytes(layer.blob)));
    descriptor.size = layer.blob.size();
    const Digest expected = Digest::of_hex(diff_id.value_or(sha256_hex(rasupd::as_bytes(layer.plain))));
    const LayerCommit made = TRY(import_layer(w, writer, reader_of(layer.blob), descriptor, expected, {}));
    writer.set_ref(made.ref, made.commit);
    TRY(writer.commit());
    return made;
  }
  Result<LayerCommit> one(const std::vector<Entry>& entries) { return one(plain_layer(tar(entries))); }
  void expect_refused(const std::vector<Entry>& entries, Kind kind, const std::string& word) {
    const auto made = one(entries);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, kind) << made.error().message;
    EXPECT_NE(made.error().message.find(word), std::string::npos) << made.error().message;
    EXPECT_TRUE(open().list_refs("")->empty());
  }
};

struct Hostile {
  const char* name;
  bool gzip;
  std::optional<Kind> refused;  ///< nullopt: harmless, and the tree must be `present` and not `absent`
  std::map<std::string, std::string> present{};
  std::vector<std::string> absent{};
};

class HostileTar : public LayerTest, public ::testing::WithParamInterface<Hostile> {};

TEST_P(HostileTar, IsRefusedOrHarmless) {
  const Hostile& c = GetParam();
  LayerBytes layer;
  layer.blob = slurp(std::string(FIXTURES) + "/negative-tars/" + c.name);
  ASSERT_FALSE(layer.blob.empty());
  layer.plain = layer.blob;
  if (c.gzip) {
    layer.media_type = "application/vnd.oci.image.layer.v1.tar+gzip";
    layer.plain = "";  // none of the compressed ones gets as far as its diff_id
  }
  const auto made = one(layer);
  if (c.refused) {
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, *c.refused) << made.error().message;
    EXPECT_TRUE(open().list_refs("")->empty());
    return;
  }
  ASSERT_TRUE(made) << made.error().message;
  const auto listing = tree(made->commit);
  for (const auto& [path, what] : c.present) {
    ASSERT_TRUE(listing.contains(path)) << path;
    EXPECT_EQ(listing.at(path), what) << path;
  }
  for (const std::string& path : c.absent) EXPECT_FALSE(listing.contains(path)) << path;
  expect_fsck_clean();
}

const Hostile kHostile[] = {
    {"absolute.tar", false, Kind::Untrusted},
    {"bomb-1GiB.tar.gz", true, Kind::Untrusted},
    {"chardev.tar", false, std::nullopt, {}, {"/dev/sda", "/dev/mem"}},
    {"dir-then-symlink.tar", false, Kind::Untrusted},
    {"dotdot.tar", false, Kind::Untrusted},
    {"dup-entry.tar", false, std::nullopt, {{"/usr/etc/passwd", "-00644 0:0 7"}}},
    {"filecap.tar", false, std::nullopt, {{"/usr/bin/cap", "-00755 0:0 1"}}},
    {"hardlink-dotdot.tar", false, Kind::Untrusted},
    {"hardlink-with-data.tar", false, std::nullopt, {{"/a", "-00644 0:0 1"}, {"/hl", "-00644 0:0 1"}}},
    {"nul-name.tar", false, std::nullopt, {{"/usr/etc/a", "-00644 0:0 5"}}},
    {"rel-symlink-write-through.tar", false, Kind::Untrusted},
    {"setuid.tar",
     false,
     std::nullopt,
     {{"/usr/bin/suid", "-04755 0:0 1"}, {"/usr/bin/sgid", "-02755 0:0 1"}}},
    {"truncated.tar.gz", true, Kind::Untrusted},
    {"whiteout-escape.tar", false, Kind::Untrusted},
};
INSTANTIATE_TEST_SUITE_P(Fixtures, HostileTar, ::testing::ValuesIn(kHostile));

TEST_F(LayerTest, HardlinkToNowhereIsRefusedWhenMerging) {
  const auto made = import_layers({{hardlink("usr/hl", "/etc/hostname")}});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, Kind::Untrusted);
  EXPECT_NE(made.error().message.find("usr/hl"), std::string::npos) << made.error().message;
  EXPECT_TRUE(open().list_refs("ostree/container/image/")->empty());
}

TEST_F(LayerTest, RefusesWhatACommitCannotHold) {
  expect_refused({{"usr/p", '6'}}, Kind::Unsuitable, "usr/p");
  expect_refused({{"usr/c", '3', "", "", 0600, 0, 0, {}, 5, 1}}, Kind::Unsuitable, "usr/c");
  expect_refused({{"usr/b", '4', "", "", 0600, 0, 0, {}, 0, 0}}, Kind::Unsuitable, "usr/b");
  expect_refused({file("usr/\xff\xfe")}, Kind::Unsuitable, "UTF-8");
}

TEST_F(LayerTest, RefusesWhatOnlyAnAttackerWrites) {
  expect_refused({file("usr/../../x")}, Kind::Untrusted, "..");
  expect_refused({file("usr/.wh.")}, Kind::Untrusted, "whiteout");
  expect_refused({file("usr/.wh..")}, Kind::Untrusted, "whiteout");
  expect_refused({file("usr/.wh...")}, Kind::Untrusted, "whiteout");
  expect_refused({dir("usr/.wh.x")}, Kind::Untrusted, "whiteout");
  expect_refused({file("usr/.wh.x/y")}, Kind::Untrusted, "whiteout");
  expect_refused({file("usr/a"), file("usr/a/b")}, Kind::Untrusted, "beneath a file");
  expect_refused({symlink("usr/a", "/tmp"), file("usr/a/b")}, Kind::Untrusted, "through a link");
  expect_refused({symlink("usr/a", "../../x"), file("usr/a/b")}, Kind::Untrusted, "out of the image");
  expect_refused({symlink("a", "b"), symlink("b", "a"), file("a/x")}, Kind::Untrusted, "through a link");
  expect_refused({hardlink("usr/a", "../x")}, Kind::Untrusted, "..");
  expect_refused({hardlink("usr/a", "usr/a")}, Kind::Untrusted, "itself");
  expect_refused({hardlink("usr/a", "usr/b"), hardlink("usr/b", "usr/a")}, Kind::Untrusted, "circle");
  expect_refused({dir("usr/d"), hardlink("usr/a", "usr/d")}, Kind::Untrusted, "directory");
  expect_refused({file(std::string(5000, 'a'))}, Kind::Untrusted, "5000 bytes");
  expect_refused({file(std::string(300, 'a'))}, Kind::Untrusted, "300 bytes");
  Entry twice = file("usr/x");
  twice.pax = {{"SCHILY.xattr.user.big", std::string(70000, 'v')}};
  expect_refused({twice}, Kind::Untrusted, "user.big");
}

TEST_F(LayerTest, RelativeLinkOfTheSameLayerIsLookedThroughInside) {
  const auto made = one({dir("usr/bin"), symlink("bin", "usr/bin"), file("bin/x")});
  ASSERT_TRUE(made) << made.error().message;
  const auto listing = tree(made->commit);
  EXPECT_EQ(listing.at("/bin"), "-> usr/bin");
  EXPECT_EQ(listing.at("/usr/bin/x"), "-00644 0:0 1");
}

TEST_F(LayerTest, LaterEntriesWinWhateverTheirKind) {
  const auto made = one({file("a"), dir("a"), file("a/b"), dir("c"), file("c/d"), file("c", "yy"),
                         symlink("e", "f"), dir("e", 0700), hardlink("g", "c"), file("g", "ggg"), file("h"),
                         hardlink("i", "h"), file("h", "hhhh")});
  ASSERT_TRUE(made) << made.error().message;
  const auto listing = tree(made->commit);
  EXPECT_EQ(listing.at("/a/b"), "-00644 0:0 1");
  EXPECT_EQ(listing.at("/c"), "-00644 0:0 2");
  EXPECT_EQ(listing.at("/e"), "d00700 0:0");
  EXPECT_EQ(listing.at("/g"), "-00644 0:0 3");
  EXPECT_EQ(listing.at("/i"), "-00644 0:0 1") << "a link binds to the file of its time";
  EXPECT_FALSE(listing.contains("/c/d"));
}

TEST_F(LayerTest, HardlinksForwardChainedAndIntoEtc) {
  const auto made = one({hardlink("usr/c", "usr/b"), hardlink("usr/b", "usr/a"), file("usr/a", "abc"),
                         file("etc/x", "xy"), hardlink("etc/y", "etc/x"), hardlink("etc/z", "/etc/y"),
                         symlink("usr/s", "a"), hardlink("usr/t", "usr/s")});
  ASSERT_TRUE(made) << made.error().message;
  const auto listing = tree(made->commit);
  for (const char* path : {"/usr/a", "/usr/b", "/usr/c"}) EXPECT_EQ(listing.at(path), "-00644 0:0 3") << path;
  for (const char* path : {"/usr/etc/x", "/usr/etc/y", "/usr/etc/z"})
    EXPECT_EQ(listing.at(path), "-00644 0:0 2");
  EXPECT_EQ(listing.at("/usr/t"), "-> a");
  EXPECT_TRUE(made->ref.starts_with("ostree/container/blob/sha256_3A_")) << made->ref;
  expect_fsck_clean();
}

TEST_F(LayerTest, HardlinksIntoLowerLayersResolveAndHaveTheirOwnRef) {
  const auto made = import_layers(
      {{file("usr/a", "abc"), dir("usr/bin"), file("usr/bin/q", "qq"), symlink("bin", "usr/bin")},
       {hardlink("usr/c", "usr/b"), hardlink("usr/b", "usr/a"), hardlink("usr/r", "bin/q"),
        hardlink("usr/new/deep", "usr/a"), whiteout("usr", "a")}});
  ASSERT_TRUE(made) << made.error().message;
  const auto listing = tree(made->commit);
  for (const char* path : {"/usr/b", "/usr/c", "/usr/new/deep"})
    EXPECT_EQ(listing.at(path), "-00644 0:0 3") << path;
  EXPECT_EQ(listing.at("/usr/r"), "-00644 0:0 2");
  EXPECT_FALSE(listing.contains("/usr/a"));
  EXPECT_EQ(open().list_refs("rasupd/layer/")->size(), 1u);
  EXPECT_EQ(open().list_refs("ostree/container/blob/")->size(), 2u);
  expect_fsck_clean();
}

TEST_F(LayerTest, NamesInUtf8WhateverTheLocale) {
  ASSERT_STREQ(std::setlocale(LC_ALL, "C"), "C");
  Entry pax = file("short");
  pax.pax = {{"path",
              "usr/share/NetLock_Arany_=Class_Gold=_F\xc5\x91tan\xc3\xba"
              "s\xc3\xadtv\xc3\xa1ny.crt"}};
  const auto made =
      one({file("usr/\xc3\xa4"), pax, symlink("usr/l", "\xc3\xa4"), hardlink("usr/h", "usr/\xc3\xa4")});
  ASSERT_TRUE(made) << made.error().message;
  const auto listing = tree(made->commit);
  EXPECT_TRUE(listing.contains("/usr/\xc3\xa4"));
  EXPECT_TRUE(listing.contains("/" + pax.pax[0].second));
  EXPECT_EQ(listing.at("/usr/l"), "-> \xc3\xa4");
  EXPECT_TRUE(listing.contains("/usr/h"));
}

TEST_F(LayerTest, ObjectsAreWhatOstreeItselfComputes) {
  Entry attributed = file("usr/x", std::string(100, 'q'), 04711);
  attributed.uid = 12;
  attributed.gid = 34;
  attributed.pax = {{"SCHILY.xattr.user.z", "1"},
                    {"SCHILY.xattr.user.a", std::string(300, 'v')},
                    {"SCHILY.xattr.trusted.overlay.opaque", "y"}};
  Entry folder = dir("usr/d", 01777, 7, 8);
  folder.pax = {{"SCHILY.xattr.user.dir", "w"}};
  // Larger than what is held in memory: goes through a temporary file.
  const auto made = one({folder, attributed, file("usr/empty", ""), file("usr/none", "n", 0),
                         symlink("usr/l", "x"), file("usr/large", std::string((4u << 20) + 17, 'L'))});
  ASSERT_TRUE(made) << made.error().message;
  expect_fsck_clean();  // recomputes every checksum from what is on disk
  const std::string out = directory + "/out";
  int status = 0;
  shell("ostree checkout --repo=" + repo_path + " " + made->commit + " " + out, &status);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(shell("stat -c '%a %u %g %s' " + out + "/usr/x"), "4711 12 34 100\n");
  EXPECT_EQ(shell("stat -c '%a %u %g' " + out + "/usr/d"), "1777 7 8\n");
  EXPECT_EQ(shell("stat -c '%a' " + out + "/usr/none"), "0\n");
  EXPECT_EQ(slurp(out + "/usr/large"), std::string((4u << 20) + 17, 'L'));
  EXPECT_EQ(shell("python3 -c \"import os; print(sorted(os.listxattr('" + out + "/usr/x')), len(os.getxattr('" + out +
                  "/usr/x', 'user.a')), os.getxattr('" + out + "/usr/d', 'user.dir'))\""),
            "['user.a', 'user.z'] 300 b'w'\n");
}

TEST_F(LayerTest, FileCapabilitiesSurvive) {
  const auto made = one(plain_layer(slurp(std::string(FIXTURES) + "/negative-tars/filecap.tar")));
  ASSERT_TRUE(made) << made.error().message;
  const auto root = open().root(made->commit);
  const auto listing = tree(made->commit);
  const std::string xattrs = shell("ostree ls -X --repo=" + repo_path + " " + made->commit + " /usr/bin/cap");
  EXPECT_NE(xattrs.find("security.capability"), std::string::npos) << xattrs;
}

TEST_F(LayerTest, ADamagedObjectIsHealed) {
  const auto first = one({file("usr/x", "content")});
  ASSERT_TRUE(first);
  const std::string object = shell("find " + repo_path + "/objects -name '*.file' | tr -d '\\n'");
  spill(object, "con");
  const auto again = one({file("usr/x", "content"), dir("usr/y")});
  ASSERT_TRUE(again) << again.error().message;
  expect_fsck_clean();
}

TEST_F(LayerTest, WrongDiffIdLeavesNoRef) {
  const auto made = one(plain_layer(tar({file("usr/x")})), std::string(64, 'a'));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, Kind::Untrusted);
  EXPECT_TRUE(open().list_refs("")->empty());
}

TEST_F(LayerTest, BytesBehindTheArchiveAreHashedToo) {
  LayerBytes layer = plain_layer(tar({file("usr/x")}) + std::string(300000, '\0') + "tail");
  EXPECT_TRUE(one(layer));
  const std::string honest = sha256_hex(rasupd::as_bytes(layer.plain));
  layer.blob.back() = 'L';
  EXPECT_FALSE(one(layer, honest));
}

}  // namespace
}  // namespace rasupd::kit
