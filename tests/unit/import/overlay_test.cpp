// R107: what lies on top of what, end to end: tar layers in, the listing of the commit out.
#include "kit.hpp"

namespace rasupd::kit {
namespace {

struct Case {
  std::string name;
  std::vector<std::vector<Entry>> layers;
  std::map<std::string, std::string> present;  ///< path → listing
  std::vector<std::string> absent;
};

std::vector<Case> matrix() {
  const std::string f = "-00644 0:0 1", d = "d00755 0:0";
  return {
      {"file over file", {{file("usr/a")}, {file("usr/a", "new", 0600)}}, {{"/usr/a", "-00600 0:0 3"}}, {}},
      {"file over directory", {{file("usr/a/b")}, {file("usr/a")}}, {{"/usr/a", f}}, {"/usr/a/b"}},
      {"directory over file", {{file("usr/a")}, {dir("usr/a"), file("usr/a/b")}}, {{"/usr/a/b", f}}, {}},
      {"directory over symlink",
       {{dir("usr/t"), file("usr/t/keep"), symlink("usr/a", "t")}, {dir("usr/a"), file("usr/a/b")}},
       {{"/usr/a", d}, {"/usr/a/b", f}, {"/usr/t/keep", f}},
       {"/usr/t/b", "/usr/a/keep"}},
      {"directory over absolute symlink",
       {{symlink("usr/a", "/usr/lib")}, {dir("usr/a"), file("usr/a/b"), whiteout("usr/a", "modules")}},
       {{"/usr/a/b", f}, {"/usr/lib/modules/6.1/vmlinuz", "-00644 0:0 6"}},
       {"/usr/lib/b"}},
      {"symlink over directory",
       {{file("usr/a/b")}, {symlink("usr/a", "x")}},
       {{"/usr/a", "-> x"}},
       {"/usr/a/b"}},
      {"symlink over file", {{file("usr/a")}, {symlink("usr/a", "x")}}, {{"/usr/a", "-> x"}}, {}},
      {"file over symlink", {{symlink("usr/a", "/usr/lib")}, {file("usr/a")}}, {{"/usr/a", f}}, {}},
      {"attributes of the upper directory win",
       {{dir("usr/a", 0755)}, {dir("usr/a", 0700, 35, 36)}},
       {{"/usr/a", "d00700 35:36"}},
       {}},
      {"a parent that no entry describes changes nothing",
       {{dir("usr/a", 0700, 35, 36)}, {file("usr/a/b")}},
       {{"/usr/a", "d00700 35:36"}, {"/usr/a/b", f}},
       {}},
      {"a parent described later wins over an implied one",
       {{file("usr/a/b")}, {dir("usr/a", 0700, 35, 36)}},
       {{"/usr/a", "d00700 35:36"}, {"/usr/a/b", f}},
       {}},
      {"whiteout of a file", {{file("usr/a")}, {whiteout("usr", "a")}}, {}, {"/usr/a", "/usr/.wh.a"}},
      {"whiteout of a directory",
       {{file("usr/a/b/c")}, {whiteout("usr/a", "b")}},
       {{"/usr/a", d}},
       {"/usr/a/b"}},
      {"whiteout of a symlink leaves its target",
       {{file("usr/t/x"), symlink("usr/a", "t")}, {whiteout("usr", "a")}},
       {{"/usr/t/x", f}},
       {"/usr/a"}},
      {"whiteout beside a new file of the name, dot first",
       {{file("usr/.bashrc", "old")}, {whiteout("usr", ".bashrc"), file("usr/.bashrc")}},
       {{"/usr/.bashrc", f}},
       {}},
      {"whiteout beside a new file of the name, plus first",
       {{file("usr/+x", "old")}, {file("usr/+x"), whiteout("usr", "+x")}},
       {{"/usr/+x", f}},
       {}},
      {"whiteout beside a new directory of the name",
       {{file("usr/a/old")}, {whiteout("usr", "a"), file("usr/a/new")}},
       {{"/usr/a/new", f}},
       {"/usr/a/old"}},
      {"whiteout in the first layer hides nothing and vanishes",
       {{whiteout("usr", "b"), file("usr/b")}},
       {{"/usr/b", f}},
       {"/usr/.wh.b"}},
      {"opaque directory hides the lower, not its own, wherever the marker stands",
       {{file("usr/a/old"), file("usr/a/d/deep")},
        {file("usr/a/new"), file("usr/a/.wh..wh..opq", ""), file("usr/a/d/new")}},
       {{"/usr/a/new", f}, {"/usr/a/d/new", f}},
       {"/usr/a/old", "/usr/a/d/deep", "/usr/a/.wh..wh..opq"}},
      {"whiteout of /etc hides the image's defaults",
       {{file("etc/passwd")}, {file(".wh.etc", "")}},
       {{"/usr", d}},
       {"/usr/etc", "/usr/etc/passwd", "/.wh.etc"}},
      {"whiteout inside /etc",
       {{file("etc/a"), file("etc/b")}, {whiteout("etc", "a")}},
       {{"/usr/etc/b", f}},
       {"/usr/etc/a"}},
      {"aufs bookkeeping is skipped", {{file("usr/.wh..wh.plnk", "")}}, {{"/usr", d}}, {"/usr/.wh..wh.plnk"}},
      {"overlayfs device whiteout",
       {{file("usr/a")}, {{"usr/a", '3', "", "", 0, 0, 0, {}, 0, 0}}},
       {{"/usr", d}},
       {"/usr/a"}},
      {"implied parent that is a link below goes where the link leads",
       {{dir("usr/bin"), symlink("bin", "usr/bin")}, {file("bin/x")}},
       {{"/bin", "-> usr/bin"}, {"/usr/bin/x", f}},
       {}},
      {"absolute link below, inside the image",
       {{dir("usr/bin"), symlink("bin", "/usr/bin")}, {file("bin/x"), whiteout("bin", "y")}},
       {{"/bin", "-> /usr/bin"}, {"/usr/bin/x", f}},
       {}},
      {"whiteout through an implied parent that is a link",
       {{file("usr/bin/y"), symlink("bin", "usr/bin")}, {whiteout("bin", "y")}},
       {{"/bin", "-> usr/bin"}},
       {"/usr/bin/y"}},
      {"through a link into a volatile directory: dropped",
       {{dir("var"), dir("run"), symlink("var/run", "/run")}, {file("var/run/x")}},
       {{"/var/run", "-> /run"}, {"/run", d}},
       {"/run/x"}},
      {"a link to itself, replaced meanwhile by what lies behind it",
       {{dir("usr/x"), symlink("usr/x/l", "/usr")}, {file("usr/x/l/x")}},
       {{"/usr/x", f}},
       {}},
      {"link to /etc leads to the defaults",
       {{file("etc/a"), symlink("conf", "/etc")}, {file("conf/b")}},
       {{"/usr/etc/b", f}, {"/usr/etc/a", f}},
       {"/etc"}},
      {"children of volatile directories are dropped, the directories stay",
       {{dir("run", 0711), file("run/a"), file("tmp/a/b"), file("proc/a"), file("sys/a"), file("dev/a")}},
       {{"/run", "d00711 0:0"}},
       {"/run/a", "/tmp/a", "/proc/a", "/sys/a", "/dev/a"}},
      {"spellings of one path",
       {{file("./usr/a"), file("/usr//b"), file("usr/./c"), file("./etc/d"), file("etcc/e")}},
       {{"/usr/a", f}, {"/usr/b", f}, {"/usr/c", f}, {"/usr/etc/d", f}, {"/etcc/e", f}},
       {"/etc"}},
      {"attributes of the root", {{dir("./", 0711)}}, {{"/", "d00711 0:0"}}, {}},
      {"empty hostname and resolv.conf of the build vanish, full ones stay",
       {{file("etc/hostname", ""), file("etc/resolv.conf", "x"), file("etc/hosts", "")}},
       {{"/usr/etc/resolv.conf", f}, {"/usr/etc/hosts", "-00644 0:0 0"}},
       {"/usr/etc/hostname"}},
      {"the store of a former ostree image is not carried",
       {{file("sysroot/ostree/repo/objects/aa/b.file"),
         hardlink("usr/a", "sysroot/ostree/repo/objects/aa/b.file")}},
       {{"/usr/a", f}, {"/sysroot", d}},
       {"/sysroot/ostree"}},
  };
}

class OverlayMatrix : public ImportTest, public ::testing::WithParamInterface<Case> {};

TEST_P(OverlayMatrix, GivesTheTree) {
  const auto done = import_layers(GetParam().layers);
  ASSERT_TRUE(done) << done.error().message;
  const auto listing = tree(done->commit);
  for (const auto& [path, what] : GetParam().present) {
    ASSERT_TRUE(listing.contains(path)) << path;
    EXPECT_EQ(listing.at(path), what) << path;
  }
  for (const std::string& path : GetParam().absent) EXPECT_FALSE(listing.contains(path)) << path;
  expect_fsck_clean();
}

std::string test_name(const ::testing::TestParamInfo<Case>& tested) {
  std::string name = tested.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(R107, OverlayMatrix, ::testing::ValuesIn(matrix()), test_name);

}  // namespace
}  // namespace rasupd::kit
