#include "bootloader/rpi.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <sstream>

#include "base/text.hpp"
#include "boot_kit.hpp"
#include "bootloader/detect.hpp"

namespace rasupd::boot {
namespace {

class RpiTest : public BootKit {
 protected:
  RpiTest() {
    a_ = deploy('a');
    b_ = deploy('b');
    c_ = deploy('c');
    fs::create_directories(control());
    fs::create_directories(side(2));
    fs::create_directories(side(3));
    EXPECT_TRUE(rpi::write_static_files(control()));
    put(side(2) / "config.txt", "[all]\narm_64bit=1\n");
    loader_ = make_rpi(root(), control(), root_ / "tryboot");
  }

  fs::path control() const { return root_ / "boot/firmware"; }
  fs::path side(unsigned partition) const {
    return root_ / (partition == 2 ? "boot/firmware-a" : "boot/firmware-b");
  }
  rpi::Autoboot autoboot() const { return rpi::parse_autoboot(text(control() / "autoboot.txt")).value(); }

  static std::string field(const std::string& text, const std::string& name) {
    const auto at = ("\n" + text).find("\n" + name);
    if (at == std::string::npos) return "";
    const auto begin = at + name.size();
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  /// What the firmware starts: [all], or [tryboot] when the reboot asked for it.
  std::string start(bool tryboot = false) const {
    const std::string file = text(control() / "autoboot.txt");
    EXPECT_LE(file.size(), 512u);
    const std::string section = file.substr(file.find(tryboot ? "[tryboot]" : "[all]"));
    const fs::path from = side(std::stoul(field(section, "boot_partition=")));
    const std::string config = text(from / "config.txt");
    const std::string id = leads_to(text(from / "cmdline.txt"));
    if (text(from / field(config, "kernel=")) != kernel_of(id)) return "nothing";
    std::istringstream initramfs(field(config, "initramfs "));
    std::string name;
    initramfs >> name;
    return text(from / name) == initramfs_of(id) ? id : "nothing";
  }

  /// All bytes of a side.
  std::map<std::string, std::string> bytes(unsigned partition) const {
    std::map<std::string, std::string> out;
    for (const auto& file : fs::recursive_directory_iterator(side(partition))) {
      if (file.is_regular_file()) out[file.path()] = text(file.path());
    }
    return out;
  }

  std::string a_, b_, c_;
  std::unique_ptr<Bootloader> loader_;
};

TEST_F(RpiTest, WritesTheInactiveSideOnlyAndCommitFlipsAllOnly) {
  ASSERT_EQ(turn(*loader_, {a_}), "");
  EXPECT_EQ(start(), a_);
  for (const std::string& id : {b_, c_, a_}) {
    const rpi::Autoboot before = autoboot();
    const auto active = bytes(before.all);
    const std::string old = start();
    ASSERT_EQ(turn(*loader_, {id, old}, 3), "");
    clean_up();
    EXPECT_EQ(bytes(before.all), active);
    EXPECT_EQ(autoboot().all, before.all) << "a trial commits nothing";
    EXPECT_EQ(start(), old);
    EXPECT_EQ(start(true), id);
    const auto passive = bytes(before.tryboot);
    ASSERT_TRUE(loader_->end_trial());
    ASSERT_TRUE(loader_->end_trial());
    EXPECT_EQ(autoboot().all, before.tryboot);
    EXPECT_EQ(bytes(before.all), active);
    EXPECT_EQ(bytes(before.tryboot), passive);
    EXPECT_EQ(start(), id);
    EXPECT_TRUE(loader_->in_step().value());
  }
}

TEST_F(RpiTest, TrialStateMachine) {
  ASSERT_EQ(turn(*loader_, {a_}), "");
  EXPECT_EQ(loader_->counting(), Counting::once);
  EXPECT_FALSE(loader_->trial().value());
  EXPECT_EQ(loader_->reboot_command(), (std::vector<std::string>{"systemctl", "reboot"}));
  ASSERT_EQ(turn(*loader_, {b_, a_}, 3), "");
  const std::vector<std::string> ask{"systemctl", "reboot", "--reboot-argument=0 tryboot"};
  const struct {
    std::string flag;
    unsigned left;
  } cases[] = {{"", 1}, {std::string(4, '\0'), 1}, {std::string{0, 0, 0, 1}, 0}};
  for (const auto& one : cases) {
    put("tryboot", one.flag);
    ASSERT_TRUE(loader_->trial().value());
    EXPECT_EQ(loader_->trial().value()->deployment, b_);
    EXPECT_EQ(loader_->trial().value()->left, one.left);
    EXPECT_EQ(loader_->reboot_command(), ask);
    EXPECT_EQ(start(), a_) << "whatever resets it, the old one starts";
  }
  ASSERT_EQ(turn(*loader_, {a_, b_}), "");  // health gave up
  EXPECT_FALSE(loader_->trial().value());
  EXPECT_EQ(start(), a_);
  EXPECT_EQ(loader_->reboot_command().size(), 2u);
}

TEST_F(RpiTest, ARollbackCopiesNothing) {
  ASSERT_EQ(turn(*loader_, {a_}), "");
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  EXPECT_EQ(start(), b_);
  const auto two = bytes(2), three = bytes(3);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(turn(*loader_, {a_, b_}), "");
    clean_up();
    EXPECT_EQ(start(), a_);
    ASSERT_EQ(turn(*loader_, {b_, a_}), "");
    EXPECT_EQ(start(), b_);
  }
  EXPECT_EQ(bytes(2), two);
  EXPECT_EQ(bytes(3), three);
}

TEST_F(RpiTest, TheLinksAreOfTheShapeThatLibostreeTakesApart) {
  ASSERT_EQ(turn(*loader_, {a_}), "");
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  ASSERT_EQ(turn(*loader_, {c_, b_}), "");
  const std::string line = text(side(autoboot().all) / "cmdline.txt");
  const auto at = line.find(" ostree=") + 8;
  const std::string path = line.substr(at, line.find_first_of(" \n", at) - at);
  // _ostree_sysroot_parse_bootlink() of libostree: ^/ostree/boot.([01])/([^/]+)/([^/]+)/([0-9]+)$
  const auto parts = split(path, '/');
  ASSERT_EQ(parts.size(), 6u) << path;
  EXPECT_EQ(parts[1], "ostree");
  EXPECT_TRUE(parts[2].size() == 6 && parts[2].starts_with("boot") && parts[2][5] == '0') << path;
  EXPECT_EQ(parts[3], "default");
  EXPECT_EQ(parts[4], std::string(64, 'c'));
  EXPECT_EQ(parts[5], std::to_string(autoboot().all));
  EXPECT_EQ(line.find("root=LABEL=root quiet=\"a b\" "), 0u);
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  // One link a side; those of deployments that no side holds are gone.
  std::size_t links = 0;
  for (const auto& file : fs::recursive_directory_iterator(root_ / "ostree/boot-0"))
    links += file.is_symlink();
  EXPECT_EQ(links, 2u);
}

TEST_F(RpiTest, ConfigurationFirmwareAndDeviceTreesOfTheImage) {
  ASSERT_EQ(turn(*loader_, {a_}), "");
  EXPECT_EQ(text(side(3) / "config.txt"),
            "[all]\narm_64bit=1\n# rasupd-begin " + a_ +
                "\n[all]\nkernel=vmlinuz\ninitramfs initramfs.img followkernel\n"
                "# rasupd-end\n");
  const std::string image = directory(b_) + "/usr/";
  put(image + "lib/raspi-firmware/start4.elf", "elf");
  put(image + "lib/raspi-firmware/config.txt", "gpu_mem=16\n# rasupd-begin x\nkernel=evil\n# rasupd-end\n");
  put(image + "lib/modules/6.1.0/dtb/broadcom/bcm2711-rpi-4-b.dtb", "dtb");
  put(image + "lib/modules/6.1.0/dtb/overlays/x.dtbo", "dtbo");
  fs::create_symlink("/etc/passwd", root_ / (image + "lib/raspi-firmware/passwd"));
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  EXPECT_EQ(text(side(2) / "start4.elf"), "elf");
  EXPECT_EQ(text(side(2) / "bcm2711-rpi-4-b.dtb"), "dtb");
  EXPECT_EQ(text(side(2) / "overlays/x.dtbo"), "dtbo");
  EXPECT_FALSE(fs::exists(side(2) / "passwd"));
  const std::string config = text(side(2) / "config.txt");
  EXPECT_TRUE(config.starts_with("gpu_mem=16\n# rasupd-begin " + b_)) << config;
  EXPECT_EQ(config.find("evil"), std::string::npos);
}

TEST_F(RpiTest, PowerCutsLeaveTheOldOrTheNew) {
#ifndef RASUPD_FAILPOINTS
  GTEST_SKIP() << "no failpoints in this build: presets dev and asan have them";
#else
  for (const char* point : {"rpi-side-begun", "rpi-file-copied", "rpi-side-written", "rpi-armed"}) {
    ASSERT_EQ(turn(*loader_, {b_, a_}), "");
    put(directory(c_) + "/usr/lib/modules/6.1.0/vmlinuz", std::string("kernel ") + point);
    put("boot/ostree/default-" + std::string(64, 'c') + "/vmlinuz-6.1.0", std::string("kernel ") + point);
    ASSERT_TRUE(loader_->prepare(next({a_, b_})));  // so that c is to be written whole
    EXPECT_TRUE(cut([&] { turn(*loader_, {c_, b_}, 3); }, point)) << point;
    EXPECT_EQ(start(), b_) << point;
    EXPECT_TRUE(loader_->in_step().value()) << point;
    const bool whole = point == std::string("rpi-side-written") || point == std::string("rpi-armed");
    const auto passive = rpi::read_side(control(), autoboot().tryboot);
    EXPECT_EQ(passive->deployment, whole ? c_ : "") << point << ": half-written is nobody's";
    // What is not the first boot entry is never asked for.
    EXPECT_EQ(loader_->reboot_command().size(), 2u) << point;
    ASSERT_EQ(turn(*loader_, {c_, b_}, 3), "") << point;
    EXPECT_EQ(start(), b_) << point;
    EXPECT_EQ(start(true), c_) << point;
    EXPECT_TRUE(cut([&] { (void)loader_->end_trial(); }, "rpi-committed"));
    EXPECT_EQ(start(), c_) << point;
    EXPECT_FALSE(loader_->trial().value()) << point;
  }
#endif
}

TEST_F(RpiTest, AfterTheSwitchAndBeforeFinishTheOldOneStartsAndItIsSeen) {
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  ASSERT_TRUE(loader_->prepare(next({c_, b_})));
  write({c_, b_});
  clean_up();
  EXPECT_EQ(start(), b_);
  EXPECT_FALSE(loader_->in_step().value());
  EXPECT_FALSE(loader_->verify(directory(c_)));
  ASSERT_TRUE(loader_->finish({}, next({c_, b_})));
  EXPECT_EQ(start(), c_);
  EXPECT_TRUE(loader_->verify(directory(c_)));
}

TEST_F(RpiTest, VerifyReadsTheSideBack) {
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  const fs::path at = side(autoboot().all);
  put(at / "vmlinuz", "kernel X");
  EXPECT_FALSE(loader_->verify(directory(b_)));
  put(at / "vmlinuz", "kernel b");
  EXPECT_TRUE(loader_->verify(directory(b_)));
  fs::remove_all(root_ / "ostree/boot-0");
  EXPECT_FALSE(loader_->verify(directory(b_)));
  ASSERT_EQ(turn(*loader_, {a_, b_}), "");
  put(side(autoboot().all) / "cmdline.txt", "init=/bin/sh\n");
  EXPECT_FALSE(loader_->in_step().value());
  // The active side is not written even then: the deployment goes to the other one.
  const auto active = bytes(autoboot().all);
  const unsigned before = autoboot().all;
  ASSERT_EQ(turn(*loader_, {a_, b_}), "");
  EXPECT_EQ(bytes(before), active);
  EXPECT_NE(autoboot().all, before);
  EXPECT_EQ(start(), a_);
}

TEST_F(RpiTest, AFullSideIsRefusedWithBothFigures) {
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  const unsigned passive = autoboot().tryboot;
  if (::geteuid() != 0 || ::unshare(CLONE_NEWNS) != 0 ||
      ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", side(passive).c_str(), "tmpfs", 0, "size=1000k") != 0) {
    GTEST_SKIP() << "needs a mount of its own: tests/run.sh runs as root";
  }
  put(side(passive) / "config.txt", "# rasupd-begin x\n");
  put(directory(c_) + "/usr/lib/modules/6.1.0/initramfs.img", std::string(2 << 20, 'x'));
  const auto refused = loader_->prepare(next({c_, b_}, 3));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::NoSpace);
  EXPECT_NE(refused.error().message.find("needed"), std::string::npos);
  EXPECT_TRUE(fs::exists(side(passive) / "config.txt")) << "refused before anything was removed";
  EXPECT_EQ(start(), b_);
  EXPECT_EQ(loader_->check_space(2 << 20).error().kind, Kind::NoSpace);
  EXPECT_TRUE(loader_->check_space(100 << 10));
  ::umount(side(passive).c_str());
}

TEST_F(RpiTest, ARetriedTrialOfWhatBootsAlreadyArmsNothing) {
  ASSERT_EQ(turn(*loader_, {a_}), "");
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  const auto two = bytes(2), three = bytes(3);
  ASSERT_EQ(turn(*loader_, {b_, a_}, 3), "");
  EXPECT_EQ(bytes(2), two) << "nor writes anything";
  EXPECT_EQ(bytes(3), three);
  EXPECT_FALSE(loader_->trial().value());
  EXPECT_EQ(start(), b_);
}

TEST(RpiAutoboot, IsShortAndStrict) {
  rpi::Autoboot one{3, 2, std::string(64, 'a') + ".123"};
  const std::string text = rpi::autoboot_text(one);
  EXPECT_LE(text.size(), rpi::kMaxAutoboot);
  const auto read = rpi::parse_autoboot(text).value();
  EXPECT_EQ(read.all, 3u);
  EXPECT_EQ(read.tryboot, 2u);
  EXPECT_EQ(read.trial, one.trial);
  EXPECT_EQ(rpi::parse_autoboot("boot_partition=3\r\n").value().tryboot, 2u);
  const std::string cases[] = {"", "[tryboot]\nboot_partition=2\n", "[all]\nboot_partition=1\n",
                               "[all]\nboot_partition=22\n", text + std::string(512, '#')};
  for (const std::string& bad : cases) {
    const auto refused = rpi::parse_autoboot(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().kind, Kind::Boot);
  }
}

TEST_F(RpiTest, WhatCannotBeReadIsNoGuess) {
  ASSERT_EQ(turn(*loader_, {a_}), "");
  ASSERT_EQ(turn(*loader_, {b_, a_}, 3), "");
  fs::remove(side(autoboot().tryboot) / "config.txt");
  EXPECT_EQ(loader_->trial().error().kind, Kind::Boot);
  EXPECT_FALSE(loader_->end_trial()) << "what is not whole is not committed";
  EXPECT_EQ(start(), a_);
  EXPECT_EQ(loader_->reboot_command().size(), 2u);
  fs::remove_all(side(3));
  EXPECT_NE(loader_->trial().error().message.find("firmware-b"), std::string::npos);
  fs::create_directories(side(3));
  fs::remove(control() / "autoboot.txt");
  EXPECT_EQ(loader_->in_step().error().kind, Kind::Boot);
}

}  // namespace
}  // namespace rasupd::boot
