#include "bootloader/extlinux.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "base/process.hpp"
#include "boot_kit.hpp"
#include "bootloader/detect.hpp"
#include "fakes/fakes.hpp"

namespace rasupd::boot {
namespace {

/// What U-Boot hands to the kernel of an `append` line (cli_simple_process_macros(): one level of backslashes
/// goes, bare $ and ' have a meaning).
std::string expanded(const std::string& append) {
  std::string out;
  for (std::size_t i = 0; i < append.size(); ++i) {
    if (append[i] == '\\') {
      out += append[++i];
    } else {
      out += append[i] == '$' || append[i] == '\'' ? '?' : append[i];
    }
  }
  return out;
}

class ExtlinuxTest : public BootKit {
 protected:
  ExtlinuxTest() {
    a_ = deploy('a');
    b_ = deploy('b');
    c_ = deploy('c');
    EXPECT_TRUE(extlinux::write_static_files(root()));
  }

  std::string menu() const { return text("boot/extlinux/extlinux.conf"); }

  /// What `sysboot` starts: the label `wanted`, or the default when the menu has none such.
  std::string boots(const std::string& wanted = "") const {
    std::map<std::string, std::map<std::string, std::string>> labels;
    std::string at, fallback;
    std::istringstream in(menu());
    for (std::string line; std::getline(in, line);) {
      const auto begin = line.find_first_not_of(' ');
      const auto gap = line.find(' ', begin);
      if (begin == std::string::npos || gap == std::string::npos) continue;
      const std::string key = line.substr(begin, gap - begin), value = line.substr(gap + 1);
      if (key == "DEFAULT") fallback = value;
      if (key == "LABEL") at = value;
      labels[at][key] = value;
    }
    auto& chosen = labels[labels.contains(wanted) && !wanted.empty() ? wanted : fallback];
    const std::string id = leads_to(chosen["APPEND"]);
    const auto file = [&](const std::string& path) { return text(fs::path("boot/extlinux") / path); };
    if (file(chosen["KERNEL"]) != kernel_of(id) || file(chosen["INITRD"]) != initramfs_of(id))
      return "nothing";
    return id;
  }

  std::string a_, b_, c_;
};

TEST_F(ExtlinuxTest, TheMenuTurnsWithTheEntries) {
  const auto loader = make_extlinux(root());
  ASSERT_EQ(turn(*loader, {a_}), "");
  EXPECT_EQ(boots(), a_);
  ASSERT_TRUE(loader->prepare(next({b_, a_})));
  EXPECT_EQ(boots(), a_);
  write({b_, a_});
  EXPECT_EQ(boots(), b_);
  EXPECT_TRUE(loader->in_step().value());
  ASSERT_EQ(turn(*loader, {a_, b_}), "");
  clean_up();
  EXPECT_EQ(boots(), a_);
  EXPECT_EQ(boots(extlinux::label(b_)), b_);
  EXPECT_EQ(loader->counting(), Counting::none);
  EXPECT_FALSE(loader->trial().value());
  EXPECT_TRUE(loader->end_trial());
}

TEST_F(ExtlinuxTest, AMenuThatSaysSomethingElseIsSeenAndCorrected) {
  const auto loader = make_extlinux(root());
  ASSERT_EQ(turn(*loader, {a_}), "");
  ASSERT_TRUE(loader->prepare(next({b_, a_})));
  write({c_, a_});
  EXPECT_FALSE(loader->in_step().value());
  EXPECT_FALSE(loader->verify(directory(c_)));
  ASSERT_TRUE(loader->finish({}, next({c_, a_})));
  EXPECT_TRUE(loader->verify(directory(c_)));
  EXPECT_EQ(boots(), c_);
  std::string other = menu();
  other.replace(other.find("DEFAULT rasupd-c"), 16, "DEFAULT rasupd-a");
  put("boot/loader/extlinux.conf", other);
  EXPECT_FALSE(loader->in_step().value());
}

TEST_F(ExtlinuxTest, PowerCutsLeaveTheOldOrTheNew) {
#ifdef RASUPD_FAILPOINTS
  const auto loader = make_extlinux(root());
  ASSERT_EQ(turn(*loader, {b_, a_}), "");
  EXPECT_TRUE(cut([&] { turn(*loader, {c_, b_}); }, "extlinux-menu-written"));
  EXPECT_EQ(boots(), b_);
  ASSERT_EQ(turn(*loader, {c_, b_}), "");
  EXPECT_EQ(boots(), c_);
#endif
}

TEST_F(ExtlinuxTest, TheLinkIsTheMarkAndAnotherProgramsFileStays) {
  EXPECT_TRUE(extlinux::is_installed(root()).value());
  EXPECT_TRUE(extlinux::write_static_files(root()));
  put("boot/loader.1/extlinux.conf", "# another's\n");
  fs::create_directory_symlink("loader.1", root_ / "boot/loader");
  EXPECT_FALSE(extlinux::is_installed(root()).value());
  fs::remove(root_ / "boot/extlinux/extlinux.conf");
  put("boot/extlinux/extlinux.conf", "DEFAULT debian\n");
  EXPECT_FALSE(extlinux::is_installed(root()).value());
  const auto refused = extlinux::write_static_files(root());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::Boot);
  EXPECT_EQ(text("boot/extlinux/extlinux.conf"), "DEFAULT debian\n");
}

TEST_F(ExtlinuxTest, HostileTextAndDeviceTrees) {
  Entry entry = next({a_}).entries.front();
  entry.title = "x\nDEFAULT evil";
  entry.options = "a=$x b='c d' \\ ostree=/o\nLABEL evil";
  std::string text = extlinux::menu_text(root(), {entry}).value();
  EXPECT_NE(text.find("  MENU LABEL x DEFAULT evil\n"), std::string::npos) << text;
  const auto at = text.find("  APPEND ") + 9;
  EXPECT_EQ(expanded(text.substr(at, text.find('\n', at) - at)), "a=$x b='c d' \\ ostree=/o LABEL evil");
  EXPECT_EQ(text.find("FDT"), std::string::npos);
  const std::string modules = directory(a_) + "/usr/lib/modules/6.1.0/";
  const std::string kernels = "../ostree/default-" + std::string(64, 'a');
  put(modules + "dtb/board.dtb", "x");
  text = extlinux::menu_text(root(), {entry}).value();
  EXPECT_NE(text.find("  FDTDIR " + kernels + "/dtb\n"), std::string::npos) << text;
  put(modules + "devicetree", "x");
  text = extlinux::menu_text(root(), {entry}).value();
  EXPECT_NE(text.find("  FDT " + kernels + "/devicetree-6.1.0\n"), std::string::npos) << text;
}

/// U-Boot's environment without U-Boot: in memory, or the real tools on a file.
class UbootTest : public ExtlinuxTest {
 protected:
  UbootTest() {
    environment_ = {{"bootcmd", "run distro_bootcmd"}, {"bootdelay", "2"}};
    runner_.answer = [this](const auto& argv, const RunLimits& limits) { return run(argv, limits); };
    loader_ = make_uboot(root(), runner_, "/etc/fw_env.config");
  }

  Result<Outcome> run(const std::vector<std::string>& argv, const RunLimits& limits) {
    Outcome out;
    EXPECT_EQ(argv.at(1), "-c");
    EXPECT_EQ(argv.at(2), "/etc/fw_env.config");
    if (broken_) return Outcome{243, "", "Cannot read environment, using default\n"};
    if (argv[0] == "fw_printenv") {
      for (const auto& [name, value] : environment_) out.out += name + "=" + value + "\n";
      return out;
    }
    EXPECT_EQ(argv[0], "fw_setenv");
    ++writes_;
    std::istringstream in(limits.input);
    for (std::string line; std::getline(in, line) && !deaf_;) {
      const std::string value = line.substr(line.find('=') + 1);
      environment_[line.substr(0, line.find('='))] = value;
      if (value.empty()) environment_.erase(line.substr(0, line.find('=')));
    }
    return out;
  }

  /// U-Boot at a start (common/autoboot.c: bootdelay_process(); drivers/bootcount/bootcount_env.c).
  std::string start() {
    if (environment_["upgrade_available"] != "1") return boots();
    const unsigned long count = std::stoul(environment_["bootcount"]) + 1,
                        limit = std::stoul(environment_["bootlimit"]);
    environment_["bootcount"] = std::to_string(count);
    if (limit == 0 || count <= limit) return boots();
    const std::string command = environment_["altbootcmd"], set = "setenv pxe_label_override ";
    if (!command.starts_with(set) || !command.ends_with("; run bootcmd")) return "nothing";
    return boots(command.substr(set.size(), command.find(';') - set.size()));
  }

  std::map<std::string, std::string> environment_;
  bool broken_ = false, deaf_ = false;
  int writes_ = 0;
  fakes::FakeRunner runner_;
  std::unique_ptr<Bootloader> loader_;
};

TEST_F(UbootTest, TrialStateMachine) {
  const struct {
    unsigned tries, starts;
    std::string up;
    unsigned left;
  } cases[] = {{3, 0, "b", 3}, {3, 1, "b", 2}, {3, 2, "b", 1},
               {3, 3, "a", 0}, {3, 4, "a", 0}, {1, 1, "a", 0}};
  for (const auto& one : cases) {
    ASSERT_EQ(turn(*loader_, {a_, c_}), "");
    EXPECT_FALSE(loader_->trial().value());
    ASSERT_EQ(turn(*loader_, {b_, a_}, one.tries), "");
    for (unsigned i = 0; i < one.starts; ++i) start();
    const auto trial = loader_->trial().value();
    ASSERT_TRUE(trial);
    EXPECT_EQ(trial->deployment, b_);
    EXPECT_EQ(trial->left, one.left);
    const auto saved = environment_;
    EXPECT_EQ(start().substr(0, 1), one.up) << one.tries << " " << one.starts;
    environment_ = saved;
    // A trial goes on through a switch that keeps its deployment first, an exhausted one as well.
    const unsigned left = one.left;
    Next again = next({b_, a_});
    again.trial = Trial{b_, left};
    ASSERT_TRUE(loader_->prepare(again));
    write({b_, a_});
    ASSERT_TRUE(loader_->finish({}, again));
    EXPECT_EQ(loader_->trial().value()->left, left);
    const auto armed = environment_;
    EXPECT_EQ(start().substr(0, 1), one.up);
    environment_ = armed;
    for (int twice = 0; twice < 2; ++twice) {
      ASSERT_TRUE(loader_->end_trial());
      EXPECT_FALSE(loader_->trial().value());
      EXPECT_EQ(start(), b_);
    }
    EXPECT_FALSE(environment_.contains("rasupd_id"));
    EXPECT_EQ(environment_["bootdelay"], "2");
  }
}

TEST_F(UbootTest, OneWriteArmsAndNothingIsWrittenWithoutNeed) {
  ASSERT_EQ(turn(*loader_, {a_}), "");
  EXPECT_EQ(writes_, 0);
  ASSERT_EQ(turn(*loader_, {b_, a_}, 3), "");
  EXPECT_EQ(writes_, 1);
  ASSERT_TRUE(loader_->end_trial());
  ASSERT_TRUE(loader_->end_trial());
  EXPECT_EQ(writes_, 2);
}

TEST_F(UbootTest, ArmedBeforeTheSwitchItLeadsBackToWhatBootsAnyway) {
#ifndef RASUPD_FAILPOINTS
  GTEST_SKIP() << "no failpoints in this build: presets dev and asan have them";
#else
  ASSERT_EQ(turn(*loader_, {a_, c_}), "");
  ::setenv("RASUPD_FAILPOINT", "uboot-armed=error", 1);
  EXPECT_NE(turn(*loader_, {b_, a_}, 3), "");
  ::unsetenv("RASUPD_FAILPOINT");
  EXPECT_EQ(loader_->trial().value()->deployment, b_);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(start(), a_);
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  EXPECT_FALSE(loader_->trial().value());
  EXPECT_EQ(start(), b_);
#endif
}

TEST_F(UbootTest, WhatCannotBeReadIsNoGuess) {
  ASSERT_EQ(turn(*loader_, {b_, a_}, 3), "");
  const auto good = environment_;
  const std::pair<std::string, std::string> cases[] = {
      {"rasupd_id", ""}, {"bootcount", ""}, {"bootcount", "x"}, {"bootlimit", "3x"}, {"bootlimit", "-1"}};
  for (const auto& [name, value] : cases) {
    environment_ = good;
    environment_[name] = value;
    const auto trial = loader_->trial();
    ASSERT_FALSE(trial) << name << "=" << value;
    EXPECT_EQ(trial.error().kind, Kind::Boot);
    EXPECT_TRUE(loader_->end_trial());
    EXPECT_FALSE(loader_->trial().value());
  }
  environment_ = good;
  broken_ = true;
  EXPECT_EQ(loader_->trial().error().kind, Kind::Boot);
  EXPECT_FALSE(loader_->end_trial());
  EXPECT_FALSE(loader_->prepare(next({c_, b_}, 3)));
}

TEST_F(UbootTest, AnEnvironmentThatDoesNotTakeItStopsTheSwitch) {
  ASSERT_EQ(turn(*loader_, {a_}), "");
  deaf_ = true;
  const std::string what = turn(*loader_, {b_, a_}, 3);
  EXPECT_NE(what.find("prepare: "), std::string::npos);
  EXPECT_NE(what.find("reads back"), std::string::npos) << what;
  EXPECT_EQ(boots(), a_);
}

TEST_F(UbootTest, TheRealToolsOnAFile) {
  if (std::system("command -v fw_setenv >/dev/null") != 0)
    GTEST_SKIP() << "libubootenv-tool is not installed: tests/run.sh installs it";
  // CRC-32 and "bootcmd=x\0\0" up to 4096 bytes of zeros, the block of an environment with one copy.
  const std::string script =
      "import binascii,struct,sys;d=b'bootcmd=x\\0\\0'.ljust(4092,b'\\0');"
      "open(sys.argv[1],'wb').write(struct.pack('<I',binascii.crc32(d))+d)";
  const std::string image = root() + "/env.img", config = root() + "/fw_env.config";
  ASSERT_EQ(std::system(("python3 -c \"" + script + "\" " + image).c_str()), 0);
  put("fw_env.config", image + " 0x0 0x1000\n");
  SystemRunner real{std::stop_token{}};
  const auto loader = make_uboot(root(), real, config);
  ASSERT_EQ(turn(*loader, {a_}), "");
  EXPECT_FALSE(loader->trial().value());
  ASSERT_EQ(turn(*loader, {b_, a_}, 3), "");
  auto trial = loader->trial().value();
  ASSERT_TRUE(trial);
  EXPECT_EQ(trial->deployment, b_);
  EXPECT_EQ(trial->left, 3u);
  ASSERT_EQ(std::system(("echo bootcount=2 | fw_setenv -c " + config + " -s -").c_str()), 0);
  EXPECT_EQ(loader->trial().value()->left, 1u);
  ASSERT_TRUE(loader->end_trial());
  EXPECT_FALSE(loader->trial().value());
  std::fstream(image, std::ios::in | std::ios::out | std::ios::binary).seekp(40).put('X');
  const auto damaged = loader->trial();
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().kind, Kind::Boot);
  EXPECT_NE(damaged.error().message.find("Cannot read"), std::string::npos) << damaged.error().message;
}

}  // namespace
}  // namespace rasupd::boot
