#include "bootloader/grub.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <sstream>

#include "boot_kit.hpp"
#include "bootloader/detect.hpp"

namespace rasupd::boot::grub {
namespace {

/// Words of a line as GRUB's shell takes them (GRUB manual, "Quoting"): nothing is special between single
/// quotes, a backslash keeps the next character outside of quotes, between double quotes only $ is used here.
std::vector<std::string> words(const std::string& line, const std::string& boot) {
  std::vector<std::string> out;
  std::string word;
  bool any = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\'') {
      any = true;
      while (++i < line.size() && line[i] != '\'') word += line[i];
    } else if (c == '\\') {
      word += line[++i];
    } else if (c == '"') {
      any = true;
      const auto end = line.find('"', i + 1);
      const std::string inside = line.substr(i + 1, end - i - 1);
      word += inside == "$rasupd_boot" ? boot : inside;
      i = end;
    } else if (c == ' ') {
      if (any || !word.empty()) out.push_back(word);
      word.clear();
      any = false;
    } else {
      word += c;
    }
  }
  if (any || !word.empty()) out.push_back(word);
  return out;
}

class GrubTest : public BootKit {
 protected:
  GrubTest() {
    a_ = deploy('a');
    b_ = deploy('b');
    c_ = deploy('c');
    loader_ = make_grub(root());
    EXPECT_TRUE(write_static_files(root(), false));
  }

  std::string menu() const { return text("boot/loader/grub.cfg"); }
  fs::path environment() const { return root_ / "boot/grub/grubenv"; }

  /// What entry `index` of the menu starts; "nothing" when it cannot.
  std::string starts(std::size_t index) const {
    std::vector<std::string> up;
    std::istringstream in(menu());
    std::string kernel;
    for (std::string line; std::getline(in, line);) {
      const auto parts = words(line, root() + "/boot");
      if (parts.size() > 1 && parts[0] == "linux") {
        const std::string id =
            leads_to(line.substr(line.find("ostree=")).substr(0, line.rfind('\'') - line.find("ostree=")));
        up.push_back(text(parts[1]) == kernel_of(id) ? id : "nothing");
      }
      if (parts.size() > 1 && parts[0] == "initrd" && text(parts[1]) != initramfs_of(up.back()))
        up.back() = "nothing";
    }
    return index < up.size() ? up[index] : "nothing";
  }

  /// The static configuration at a start: counts down in the environment block, saves, and chooses.
  std::string boots(bool save = true) {
    const std::string trial = trial_of_menu(menu());
    if (trial.empty()) return starts(0);
    const auto counter = parse_environment(text(environment()));
    const bool own = counter && *counter && (*counter)->deployment == trial && (*counter)->left > 0;
    if (!own) return starts(1);
    if (save) put(environment(), environment_text(Trial{trial, (*counter)->left - 1}));
    return starts(0);
  }

  std::string a_, b_, c_;
  std::unique_ptr<Bootloader> loader_;
};

/// True when grub-script-check(1) is there and refuses `text`.
bool refused_by_grub(const fs::path& directory, const std::string& text, bool* checked) {
  const fs::path file = directory / "check.cfg";
  std::ofstream(file, std::ios::trunc) << text;
  *checked = std::system("command -v grub-script-check >/dev/null") == 0;
  return *checked && std::system(("grub-script-check " + file.string() + " 2>/dev/null").c_str()) != 0;
}

TEST_F(GrubTest, GrubTakesConfigurationAndMenusWithHostileText) {
  Entry entry;
  entry.kernel = "/ostree/default-x/vmlinuz-6.1.0";
  entry.initrd = "/boot/ostree/default-x/initramfs'.img";
  std::string all = static_config(false) + static_config(true);
  const char* titles[] = {
      "plain", "it's", "a } menuentry 'x' {", "$(reboot) ${root} `x`", "a\nlinux /evil\n}", "\\", ""};
  for (const char* title : titles) {
    entry.title = title;
    entry.options = "root=x a='b c' d=\"e f\" $root ${x} \\ ; } | & < > # ostree=/ostree/boot.0/d/c/0";
    const std::string one = menu_text({entry}, "id.0");
    all += one;
    std::istringstream in(one);
    std::string line;
    std::getline(in, line);  // the comment
    std::getline(in, line);
    EXPECT_EQ(words(line, ""), (std::vector<std::string>{"set", "rasupd_trial=id.0"}));
    std::getline(in, line);
    std::string shown(title);
    for (char& c : shown) c = c == '\n' ? ' ' : c;
    EXPECT_EQ(words(line, ""), (std::vector<std::string>{"menuentry", shown, "{"}));
    std::getline(in, line);
    EXPECT_EQ(words(line, "/b"),
              (std::vector<std::string>{"linux", "/b/ostree/default-x/vmlinuz-6.1.0", "root=x", "a='b", "c'",
                                        "d=e f", "$root", "${x}", "\\", ";", "}", "|", "&", "<", ">", "#",
                                        "ostree=/ostree/boot.0/d/c/0"}));
    std::getline(in, line);
    EXPECT_EQ(words(line, "/b"), (std::vector<std::string>{"initrd", "/b/ostree/default-x/initramfs'.img"}));
  }
  bool checked = false;
  EXPECT_FALSE(refused_by_grub(root_, all, &checked));
  if (!checked) GTEST_SKIP() << "grub-script-check is not installed: tests/run.sh installs grub-common";
  EXPECT_TRUE(refused_by_grub(root_, "menuentry 'x' {\n", &checked));
}

TEST(GrubEnvironment, IsExactlyAsLongAsGrubWantsWithTheCounterInTheFirstSector) {
  const std::string id = std::string(64, 'a') + ".12";
  for (unsigned left = 0; left <= 9; ++left) {
    const std::string block = environment_text(Trial{id, left});
    ASSERT_EQ(block.size(), kEnvironmentBytes);
    EXPECT_TRUE(block.starts_with("# GRUB Environment Block\n"));
    EXPECT_LT(block.find("rasupd_left="), 500u);
    const auto read = parse_environment(block);
    ASSERT_TRUE(read && *read);
    EXPECT_EQ((*read)->deployment, id);
    EXPECT_EQ((*read)->left, left);
  }
  EXPECT_EQ(environment_text(std::nullopt).size(), kEnvironmentBytes);
  EXPECT_FALSE(parse_environment(environment_text(std::nullopt)).value());
}

TEST(GrubEnvironment, DamagedBlocksAreNoGuess) {
  const auto padded = [](std::string text) {
    text = "# GRUB Environment Block\n" + text;
    text.resize(kEnvironmentBytes, '#');
    return text;
  };
  const std::string good = environment_text(Trial{"id.0", 2});
  const std::string cases[] = {"",
                               good.substr(0, 1023),
                               good + "#",
                               std::string(kEnvironmentBytes, '\0'),
                               padded("rasupd_id=id.0\n"),
                               padded("rasupd_left=2\n"),
                               padded("rasupd_id=id.0\nrasupd_left=\n"),
                               padded("rasupd_id=id.0\nrasupd_left=x\n"),
                               padded("rasupd_id=id.0\nrasupd_left=2x\n"),
                               padded("rasupd_id=id.0\nrasupd_left=10\n"),
                               padded("rasupd_id=id.0\nrasupd_left=-1\n")};
  for (const std::string& block : cases) {
    const auto read = parse_environment(block);
    ASSERT_FALSE(read) << block.substr(0, 80);
    EXPECT_EQ(read.error().kind, Kind::Boot);
    EXPECT_FALSE(read.error().hint.empty());
  }
}

TEST_F(GrubTest, InstallingTwiceKeepsTheCounterAndForeignConfigurationsAreNotOurs) {
  EXPECT_TRUE(is_installed(root()).value());
  put(environment(), environment_text(Trial{"x.0", 2}));
  ASSERT_TRUE(write_static_files(root(), true));
  EXPECT_EQ(parse_environment(text(environment())).value()->left, 2u);
  EXPECT_NE(text("boot/grub/grub.cfg").find("set rasupd_boot=\"\""), std::string::npos);
  put("boot/grub/grub.cfg", "# made by update-grub\n# rasupd-grub 1\n");
  EXPECT_FALSE(is_installed(root()).value());
}

TEST_F(GrubTest, TheMenuTurnsWithTheEntries) {
  ASSERT_EQ(turn(*loader_, {a_}), "");
  EXPECT_EQ(boots(), a_);
  const std::string today = menu();
  ASSERT_TRUE(loader_->prepare(next({b_, a_})));
  EXPECT_EQ(menu(), today);
  write({b_, a_});
  EXPECT_EQ(boots(), b_) << "complete before anything of ours runs after the switch";
  EXPECT_TRUE(loader_->in_step().value());
  ASSERT_EQ(turn(*loader_, {a_, b_}), "");
  clean_up();
  EXPECT_EQ(boots(), a_);
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  EXPECT_EQ(boots(), b_);
}

TEST_F(GrubTest, FinishCorrectsAMenuThatWasForetoldWrong) {
  ASSERT_EQ(turn(*loader_, {a_}), "");
  ASSERT_TRUE(loader_->prepare(next({b_, a_})));
  write({c_, a_});
  EXPECT_FALSE(loader_->in_step().value());
  EXPECT_FALSE(loader_->verify(directory(c_)));
  ASSERT_TRUE(loader_->finish({}, next({c_, a_})));
  EXPECT_TRUE(loader_->verify(directory(c_)));
  EXPECT_EQ(boots(), c_);
}

TEST_F(GrubTest, TrialStateMachine) {
  const struct {
    unsigned tries, starts;
    std::string up;
    unsigned left;
  } cases[] = {{3, 0, "b", 3}, {3, 1, "b", 2}, {3, 2, "b", 1}, {3, 3, "a", 0},
               {3, 4, "a", 0}, {1, 1, "a", 0}, {9, 8, "b", 1}};
  for (const auto& one : cases) {
    ASSERT_EQ(turn(*loader_, {a_}), "");
    EXPECT_FALSE(loader_->trial().value());
    ASSERT_EQ(turn(*loader_, {b_, a_}, one.tries), "");
    for (unsigned i = 0; i < one.starts; ++i) boots();
    const auto trial = loader_->trial().value();
    ASSERT_TRUE(trial);
    EXPECT_EQ(trial->deployment, b_);
    EXPECT_EQ(trial->left, one.left);
    EXPECT_EQ(boots(false).substr(0, 1), one.up) << one.tries << " " << one.starts;
    for (int twice = 0; twice < 2; ++twice) {
      ASSERT_TRUE(loader_->end_trial());
      EXPECT_FALSE(loader_->trial().value());
      EXPECT_EQ(boots(), b_);
    }
  }
}

TEST_F(GrubTest, WithoutItsCounterATrialIsExhaustedAndADamagedOneIsAnError) {
  ASSERT_EQ(turn(*loader_, {a_}), "");
  ASSERT_EQ(turn(*loader_, {b_, a_}, 3), "");
  put(environment(), environment_text(std::nullopt));
  EXPECT_EQ(loader_->trial().value()->left, 0u);
  EXPECT_EQ(boots(), a_);
  put(environment(), environment_text(Trial{c_, 3}));
  EXPECT_EQ(loader_->trial().value()->left, 0u);
  EXPECT_EQ(boots(), a_);
  for (const std::string damaged : {"", "half"}) {
    put(environment(), damaged);
    const auto trial = loader_->trial();
    ASSERT_FALSE(trial);
    EXPECT_EQ(trial.error().kind, Kind::Boot);
    EXPECT_EQ(boots(), a_);
  }
  fs::remove(environment());
  EXPECT_FALSE(loader_->trial());
  EXPECT_EQ(boots(), a_);
  ASSERT_TRUE(loader_->end_trial());  // writes it anew
  EXPECT_EQ(text(environment()), environment_text(std::nullopt));
  EXPECT_FALSE(loader_->trial().value());
}

TEST_F(GrubTest, TheBlockIsRewrittenInPlace) {
  ASSERT_EQ(turn(*loader_, {a_}), "");
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat(environment().c_str(), &before), 0);
  ASSERT_EQ(turn(*loader_, {b_, a_}, 3), "");
  ASSERT_TRUE(loader_->end_trial());
  ASSERT_EQ(::stat(environment().c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(after.st_size, static_cast<off_t>(kEnvironmentBytes));
}

TEST_F(GrubTest, AnotherSwitchEndsTheTrial) {
  ASSERT_EQ(turn(*loader_, {a_}), "");
  ASSERT_EQ(turn(*loader_, {b_, a_}, 3), "");
  ASSERT_EQ(turn(*loader_, {a_, b_}), "");
  EXPECT_FALSE(loader_->trial().value());
  EXPECT_EQ(text(environment()), environment_text(std::nullopt));
  EXPECT_EQ(boots(), a_);
}

TEST_F(GrubTest, VerifyWantsMenuKernelAndInitramfs) {
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  const std::string good = menu();
  const auto broken = [&](std::string text) {
    put("boot/loader/grub.cfg", text);
    return !loader_->verify(directory(b_)) && !loader_->in_step().value();
  };
  EXPECT_TRUE(broken(""));
  EXPECT_TRUE(broken(good.substr(0, good.size() / 2)));
  std::string other = good;
  other.replace(other.find("'quiet="), 7, "'loud=");
  EXPECT_TRUE(broken(other));
  fs::remove(root_ / "boot/loader/grub.cfg");
  EXPECT_FALSE(loader_->in_step().value());
  put("boot/loader/grub.cfg", "# a title of another time\n" + good);
  EXPECT_TRUE(loader_->verify(directory(b_)));
  put("boot/ostree/default-" + std::string(64, 'b') + "/vmlinuz-6.1.0", "kernel X");
  EXPECT_FALSE(loader_->verify(directory(b_)));
}

TEST_F(GrubTest, ForeignEntriesAndHalfWrittenFiles) {
  ASSERT_EQ(turn(*loader_, {a_}), "");
  put("boot/loader/entries/rescue.conf", "title Rescue\nlinux /r\n");
  put("boot/loader/entries/ostree-9.conf.AbCdEf", "half");
  put("boot/loader/grub.cfg.AbCdEf", "half");
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  EXPECT_EQ(text("boot/loader/entries/rescue.conf"), "title Rescue\nlinux /r\n");
  EXPECT_EQ(boots(), b_);
  EXPECT_TRUE(loader_->in_step().value());
}

TEST_F(GrubTest, PowerCutsLeaveTheOldOrTheNew) {
#ifndef RASUPD_FAILPOINTS
  GTEST_SKIP() << "no failpoints in this build: presets dev and asan have them";
#else
  for (const char* point : {"menu-written", "trial-armed"}) {
    ASSERT_EQ(turn(*loader_, {b_, a_}), "");
    clean_up();
    EXPECT_TRUE(cut([&] { turn(*loader_, {c_, b_}, 3); }, point)) << point;
    EXPECT_EQ(boots(), b_) << point;
    EXPECT_TRUE(loader_->in_step().value());
    ASSERT_EQ(turn(*loader_, {c_, b_}, 3), "") << point;
    EXPECT_EQ(boots(), c_) << point;
  }
  EXPECT_TRUE(cut([&] { (void)loader_->end_trial(); }, "trial-menu-cleared"));
  EXPECT_FALSE(loader_->trial().value());
  EXPECT_EQ(boots(), c_);
#endif
}

}  // namespace
}  // namespace rasupd::boot::grub
