#include "bootloader/entries.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "bootloader/bootloader.hpp"
#include "bootloader/kernel.hpp"

namespace rasupd::boot {
namespace {

namespace fs = std::filesystem;

const std::string kChecksum(64, 'a');
const std::string kCommit(64, 'c');

std::string entry_text(int version, const std::string& serial = "0") {
  return "title Test " + std::to_string(version) + "\nversion " + std::to_string(version) +
         "\noptions root=LABEL=root quiet=\"a b\" ostree=/ostree/boot.1/default/" + kChecksum + "/" + serial +
         "\nlinux /ostree/default-" + kChecksum + "/vmlinuz-6.1.0\ninitrd /ostree/default-" + kChecksum +
         "/initramfs-6.1.0.img\n";
}

class EntriesTest : public ::testing::Test {
 protected:
  EntriesTest() {
    char name[] = "/tmp/rasupd-entries-XXXXXX";
    root_ = ::mkdtemp(name);
    fs::create_directories(root_ / "boot/loader.0/entries");
    fs::create_directory_symlink("loader.0", root_ / "boot/loader");
  }
  ~EntriesTest() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& content) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::trunc) << content;
  }
  /// A deployment with kernel, its boot link `serial`, and the copies in /boot.
  std::string deployment(const std::string& serial, const std::string& kernel = "kernel") {
    const std::string directory = "ostree/deploy/default/deploy/" + kCommit + "." + serial;
    put(directory + "/usr/lib/modules/6.1.0/vmlinuz", kernel);
    put(directory + "/usr/lib/modules/6.1.0/initramfs.img", "initramfs");
    const fs::path links = root_ / "ostree/boot.1/default" / kChecksum;
    fs::create_directories(links);
    fs::create_symlink("../../../deploy/default/deploy/" + kCommit + "." + serial, links / serial);
    return directory;
  }
  void boot_copies(const std::string& kernel = "kernel", const std::string& initramfs = "initramfs") {
    put("boot/ostree/default-" + kChecksum + "/vmlinuz-6.1.0", kernel);
    put("boot/ostree/default-" + kChecksum + "/initramfs-6.1.0.img", initramfs);
  }
  std::string root() const { return root_; }

  fs::path root_;
};

TEST(ParseEntry, TakesAllOfAnEntryOfLibostree) {
  const auto entry = parse_entry(entry_text(7, "3"), "ostree-1.conf");
  ASSERT_TRUE(entry) << entry.error().message;
  EXPECT_EQ(entry->version, 7u);
  EXPECT_EQ(entry->title, "Test 7");
  EXPECT_EQ(entry->kernel, "/ostree/default-" + kChecksum + "/vmlinuz-6.1.0");
  EXPECT_EQ(entry->initrd, "/ostree/default-" + kChecksum + "/initramfs-6.1.0.img");
  EXPECT_EQ(entry->ostree, "/ostree/boot.1/default/" + kChecksum + "/3");
  EXPECT_EQ(entry->stateroot, "default");
  EXPECT_EQ(entry->boot_checksum, kChecksum);
}

TEST(ParseEntry, RefusesWithTheReason) {
  const std::pair<std::string, std::string> cases[] = {
      {"title x\nversion 1\nlinux /a\noptions quiet\n", "no ostree="},
      {"version 1\nlinux /a\noptions ostree=/somewhere\n", "malformed ostree="},
      {"version 1\nlinux /a\noptions ostree=/ostree/boot.1/../" + kChecksum + "/0\n", "malformed ostree="},
      {"version 1\nlinux /a\noptions ostree=/ostree/boot.1/default/" + kChecksum + "/../x\n",
       "malformed ostree="},
      {"version 1\noptions ostree=/ostree/boot.1/default/" + kChecksum + "/0\n", "no kernel"},
      {"version x\nlinux /a\noptions ostree=/ostree/boot.1/default/" + kChecksum + "/0\n", "no version"},
      {"", "no ostree="},
      {"version 1\nlinux /a\noptions ostr", "no ostree="},
  };
  for (const auto& [text, why] : cases) {
    const auto entry = parse_entry(text, "ostree-1.conf");
    ASSERT_FALSE(entry) << text;
    EXPECT_EQ(entry.error().kind, Kind::Boot);
    EXPECT_NE(entry.error().message.find(why), std::string::npos) << entry.error().message;
    EXPECT_NE(entry.error().message.find("ostree-1.conf"), std::string::npos);
  }
}

TEST(SplitOptions, KeepsQuotedBlanksTogether) {
  EXPECT_EQ(split_options("  a=1 \tb=\"x y\" c "), (std::vector<std::string>{"a=1", "b=\"x y\"", "c"}));
  EXPECT_TRUE(split_options(" ").empty());
}

TEST_F(EntriesTest, OrdersByVersionAndSetsForeignAndBrokenOnesApart) {
  put("boot/loader/entries/ostree-1.conf", entry_text(9));
  put("boot/loader/entries/ostree-2-default.conf", entry_text(10, "1"));
  put("boot/loader/entries/ostree-3+2-1.conf", entry_text(2));
  put("boot/loader/entries/windows.conf", "title Windows\nefi /EFI/w.efi\n");
  put("boot/loader/entries/ostree-4.conf", "title half wri");
  put("boot/loader/entries/.ostree-5.conf.x", "junk");
  put("boot/loader/entries/ostree-6.conf.AbCdEf", "junk");
  const auto menu = read_menu(root());
  ASSERT_TRUE(menu) << menu.error().message;
  EXPECT_TRUE(menu->present);
  ASSERT_EQ(menu->entries.size(), 3u);
  EXPECT_EQ(menu->entries[0].version, 10u);
  EXPECT_EQ(menu->entries[1].version, 9u);
  EXPECT_EQ(menu->entries[2].file, "ostree-3+2-1.conf");
  ASSERT_EQ(menu->foreign.size(), 1u);
  EXPECT_EQ(menu->foreign[0].name, "windows.conf");
  ASSERT_EQ(menu->problems.size(), 1u);
  EXPECT_NE(menu->problems[0].find("ostree-4.conf"), std::string::npos);
}

TEST_F(EntriesTest, NoDirectoryIsAnEmptyMenu) {
  fs::remove_all(root_ / "boot");
  const auto menu = read_menu(root());
  ASSERT_TRUE(menu);
  EXPECT_FALSE(menu->present);
  EXPECT_TRUE(menu->entries.empty());
}

TEST_F(EntriesTest, ResolvesToTheDeploymentOrSaysWhatIsMissing) {
  const std::string directory = deployment("0");
  const Entry entry = parse_entry(entry_text(1), "ostree-1.conf").value();
  EXPECT_EQ(resolve(root(), entry).value(), directory);
  fs::remove_all(root_ / directory);
  auto gone = resolve(root(), entry);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().kind, Kind::Boot);
  EXPECT_NE(gone.error().message.find("ostree-1.conf"), std::string::npos);
  EXPECT_NE(gone.error().message.find(directory), std::string::npos);
  EXPECT_FALSE(gone.error().hint.empty());
  fs::remove_all(root_ / "ostree/boot.1");
  gone = resolve(root(), entry);
  ASSERT_FALSE(gone);
  EXPECT_NE(gone.error().message.find("the link is missing"), std::string::npos);
}

TEST_F(EntriesTest, ALinkThatIsNoneOfLibostreesIsRefused) {
  deployment("0");
  const fs::path link = root_ / "ostree/boot.1/default" / kChecksum / "0";
  for (const char* target : {"/etc", "../../../deploy/other/deploy/x.0", "x"}) {
    fs::remove(link);
    fs::create_symlink(target, link);
    EXPECT_FALSE(resolve(root(), parse_entry(entry_text(1), "ostree-1.conf").value())) << target;
  }
}

TEST_F(EntriesTest, VerifyComparesKernelAndInitramfs) {
  const std::string directory = deployment("0");
  put("boot/loader/entries/ostree-1.conf", entry_text(1));
  boot_copies();
  const auto loader = make_entries(root());
  const auto good = loader->verify(directory);
  EXPECT_TRUE(good) << good.error().message;
  boot_copies("kernel", "initramfX");
  auto bad = loader->verify(directory);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().kind, Kind::Boot);
  EXPECT_NE(bad.error().message.find("initramfs-6.1.0.img differs"), std::string::npos)
      << bad.error().message;
  boot_copies("kernex");
  bad = loader->verify(directory);
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("vmlinuz-6.1.0 differs"), std::string::npos) << bad.error().message;
  fs::remove_all(root_ / "boot/ostree");
  bad = loader->verify(directory);
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("is missing"), std::string::npos);
}

TEST_F(EntriesTest, VerifyWantsTheDeploymentFirst) {
  const std::string first = deployment("0");
  const std::string second = deployment("1");
  boot_copies();
  put("boot/loader/entries/ostree-1.conf", entry_text(1, "0"));
  put("boot/loader/entries/ostree-2.conf", entry_text(2, "1"));
  EXPECT_TRUE(make_entries(root())->verify(second));
  const auto wrong = make_entries(root())->verify(first);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("not to " + first), std::string::npos);
  put("boot/loader/entries/ostree-3.conf", "title cut off\n");
  EXPECT_FALSE(make_entries(root())->verify(second));
}

TEST_F(EntriesTest, BringsForeignEntriesBackAndLeavesNewOnesAlone) {
  const auto loader = make_entries(root());
  Menu before;
  before.foreign = {{"windows.conf", "title Windows\n"}, {"rescue.conf", "title Old\n"}};
  put("boot/loader/entries/rescue.conf", "title New\n");
  EXPECT_TRUE(loader->finish(before, {})->empty());
  const auto menu = read_menu(root());
  ASSERT_EQ(menu->foreign.size(), 2u);
  EXPECT_EQ(menu->foreign[0].content, "title New\n");
  EXPECT_EQ(menu->foreign[1].content, "title Windows\n");
  fs::remove_all(root_ / "boot/loader.0");
  EXPECT_EQ(loader->finish(before, {})->size(), 2u);
}

TEST_F(EntriesTest, InstallKernelHealsADamagedCopyAndKeepsAGoodOne) {
  const std::string directory = deployment("0");
  boot_copies("kern", "initramfs");  // cut off by a power loss; libostree would leave it so
  const fs::path good = root_ / ("boot/ostree/default-" + kChecksum) / "initramfs-6.1.0.img";
  const auto time = fs::last_write_time(good);
  const auto done = install_kernel(root(), directory, "default", kChecksum);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(
      same_content(root_ / directory / "usr/lib/modules/6.1.0/vmlinuz", good.parent_path() / "vmlinuz-6.1.0")
          .value());
  EXPECT_EQ(fs::last_write_time(good), time);
  EXPECT_EQ(fs::hard_link_count(good), 1u);
  EXPECT_FALSE(fs::exists(good.parent_path() / "vmlinuz-6.1.0.rasupd-new"));
}

TEST_F(EntriesTest, SameContentSeesLengthAndBytes) {
  put("a", std::string(300000, 'x'));
  put("b", std::string(300000, 'x'));
  EXPECT_TRUE(same_content(root_ / "a", root_ / "b").value());
  put("b", std::string(299999, 'x') + "y");
  EXPECT_FALSE(same_content(root_ / "a", root_ / "b").value());
  put("b", std::string(299999, 'x'));
  EXPECT_FALSE(same_content(root_ / "a", root_ / "b").value());
  EXPECT_FALSE(same_content(root_ / "a", root_ / "missing"));
}

}  // namespace
}  // namespace rasupd::boot
