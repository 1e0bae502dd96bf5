#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <algorithm>
#include <optional>

#include "boot_kit.hpp"
#include "bootloader/detect.hpp"
#include "bootloader/esp.hpp"

namespace rasupd::boot {
namespace {

/// What systemd-boot makes of one file (src/boot/boot.c of 252: config_entry_add_type1, boot_entry_compare).
struct Seen {
  std::string file, id, key, version, options, kernel, initrd;
  std::optional<unsigned> left;
};

class SystemdBootTest : public BootKit {
 protected:
  SystemdBootTest() {
    fs::create_directories(esp() / "loader/entries");
    a_ = deploy('a');
    b_ = deploy('b');
    c_ = deploy('c');
    loader_ = make_systemd_boot(root(), esp());
  }

  fs::path esp() const { return root_ / "efi"; }
  fs::path entries() const { return esp() / "loader/entries"; }

  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& file : fs::directory_iterator(entries())) out.push_back(file.path().filename());
    std::sort(out.begin(), out.end());
    return out;
  }

  Seen see(const fs::path& path) const {
    Seen out;
    out.file = out.id = path.filename();
    if (const auto plus = out.file.find('+'); plus != std::string::npos) {
      out.id = out.file.substr(0, plus) + ".conf";
      out.left = std::stoul(out.file.substr(plus + 1));
    }
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      const auto gap = line.find(' ');
      const std::string name = line.substr(0, gap),
                        value = gap == std::string::npos ? "" : line.substr(gap + 1);
      if (name == "sort-key") out.key = value;
      if (name == "version") out.version = value;
      if (name == "options") out.options = value;
      if (name == "linux") out.kernel = value;
      if (name == "initrd") out.initrd = value;
    }
    return out;
  }

  /// The entry it starts without help. Versions and names of ours have as many digits, so bytes order them.
  std::optional<Seen> chosen() const {
    std::optional<Seen> best;
    for (const std::string& file : files()) {
      if (!file.ends_with(".conf")) continue;
      const Seen seen = see(entries() / file);
      const auto rank = [](const Seen& s) { return std::pair(s.left == 0u, s.key.empty()); };
      const auto before = [&](const Seen& x, const Seen& y) {
        if (rank(x) != rank(y)) return rank(x) < rank(y);
        if (x.key != y.key) return x.key < y.key;
        if (x.version != y.version) return x.version > y.version;
        return x.id > y.id;
      };
      if (!best || before(seen, *best)) best = seen;
    }
    return best;
  }

  /// The deployment that comes up, with its own kernel and initramfs; else what is wrong.
  std::string boots() const {
    const auto seen = chosen();
    if (!seen) return "no entry";
    const std::string id = leads_to(seen->options);
    if (id == "nothing") return seen->file + " dangles";
    const auto on_esp = [&](const std::string& path) { return text(esp() / path.substr(1)); };
    if (seen->kernel.empty() || on_esp(seen->kernel) != kernel_of(id)) return "a wrong kernel";
    if (on_esp(seen->initrd) != initramfs_of(id)) return "a wrong initramfs";
    return id;
  }

  /// systemd-boot at a start: counts down in the file name.
  std::string start() {
    const auto seen = chosen();
    if (seen && seen->left && *seen->left > 0) {
      const unsigned left = *seen->left - 1;
      const auto dash = seen->file.find('-', seen->file.find('+'));
      const unsigned done = dash == std::string::npos ? 0 : std::stoul(seen->file.substr(dash + 1));
      const std::string name = seen->id.substr(0, seen->id.size() - 5) + "+" + std::to_string(left) + "-" +
                               std::to_string(done + 1) + ".conf";
      fs::rename(entries() / seen->file, entries() / name);
    }
    return leads_to(seen->options);
  }

  std::string a_, b_, c_;
  std::unique_ptr<Bootloader> loader_;
};

TEST_F(SystemdBootTest, MirrorsEntriesAndKernelsAndStartsTheDefault) {
  ASSERT_EQ(turn(*loader_, {a_}), "");
  EXPECT_EQ(boots(), a_);
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  clean_up();
  EXPECT_EQ(boots(), b_);
  EXPECT_TRUE(loader_->in_step().value());
  EXPECT_EQ(files().size(), 2u);
  ASSERT_EQ(turn(*loader_, {a_, b_}), "");  // a rollback, and back again
  clean_up();
  EXPECT_EQ(boots(), a_);
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  EXPECT_EQ(boots(), b_);
  EXPECT_FALSE(loader_->trial().value());
}

TEST_F(SystemdBootTest, ATrialStartsThreeTimesAndThenTheOldOne) {
  ASSERT_EQ(turn(*loader_, {a_}), "");
  ASSERT_EQ(turn(*loader_, {b_, a_}, 3), "");
  clean_up();
  for (const unsigned left : {3u, 2u, 1u}) {
    const auto trial = loader_->trial().value();
    ASSERT_TRUE(trial);
    EXPECT_EQ(trial->deployment, b_);
    EXPECT_EQ(trial->left, left);
    EXPECT_EQ(boots(), b_);
    EXPECT_EQ(start(), b_);
    EXPECT_TRUE(loader_->in_step().value());
  }
  EXPECT_EQ(loader_->trial().value()->left, 0u);
  EXPECT_EQ(boots(), a_);
  EXPECT_EQ(start(), a_);
  ASSERT_EQ(turn(*loader_, {a_, b_}), "");
  EXPECT_FALSE(loader_->trial().value());
  EXPECT_EQ(boots(), a_);
}

TEST_F(SystemdBootTest, EndTrialIsWhatBlessBootDoesAndComesTwice) {
  const struct {
    unsigned starts;
    bool blessed;
  } cases[] = {{0, false}, {1, false}, {2, false}, {3, false}, {1, true}};
  for (const auto& one : cases) {
    ASSERT_EQ(turn(*loader_, {a_}), "");
    ASSERT_EQ(turn(*loader_, {b_, a_}, 3), "");
    for (unsigned i = 0; i < one.starts; ++i) start();
    if (one.blessed) fs::rename(entries() / chosen()->file, entries() / chosen()->id);
    for (int twice = 0; twice < 2; ++twice) {
      const auto ended = loader_->end_trial();
      ASSERT_TRUE(ended) << ended.error().message;
      EXPECT_FALSE(loader_->trial().value());
      EXPECT_EQ(boots(), b_) << one.starts;
      EXPECT_EQ(chosen()->file.find('+'), std::string::npos);
    }
    EXPECT_TRUE(loader_->in_step().value());
  }
}

TEST_F(SystemdBootTest, ACounterWithoutADeploymentIsNoGuess) {
  ASSERT_EQ(turn(*loader_, {b_, a_}, 3), "");
  const fs::path first = entries() / chosen()->file;
  std::string content = text(first);
  put(first, content.substr(content.find('\n') + 1));
  const auto trial = loader_->trial();
  ASSERT_FALSE(trial);
  EXPECT_EQ(trial.error().kind, Kind::Boot);
  EXPECT_NE(trial.error().message.find(first.filename()), std::string::npos);
}

TEST_F(SystemdBootTest, PrepareChangesNothingThatBoots) {
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  const auto before = files();
  ASSERT_TRUE(loader_->prepare(next({c_, b_}, 3)));
  EXPECT_EQ(files(), before);
  EXPECT_EQ(boots(), b_);
  EXPECT_EQ(text("efi/ostree/default-" + std::string(64, 'c') + "/vmlinuz-6.1.0"), "kernel c");
}

TEST_F(SystemdBootTest, AnOutOfStepEspIsSeenAndSurvivesTheNextSwitch) {
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  ASSERT_TRUE(loader_->prepare(next({c_, b_})));
  write({c_, b_});  // power cut here
  EXPECT_FALSE(loader_->in_step().value());
  EXPECT_EQ(boots(), b_);
  // The next switch makes the boot version anew that the ESP still names.
  const auto prepared = loader_->prepare(next({b_, c_}));
  ASSERT_TRUE(prepared) << prepared.error().message;
  EXPECT_EQ(boots(), b_);
  write({c_, a_});
  EXPECT_EQ(boots(), b_);
  ASSERT_EQ(turn(*loader_, {a_, c_}), "");
  clean_up();
  EXPECT_EQ(boots(), a_);
}

TEST_F(SystemdBootTest, PowerCutsLeaveTheOldOrTheNew) {
#ifndef RASUPD_FAILPOINTS
  GTEST_SKIP() << "no failpoints in this build: presets dev and asan have them";
#else
  for (const char* point :
       {"esp-kernel-copied", "esp-entry-written", "esp-entries-rewritten", "esp-entries-removed"}) {
    fs::remove_all(esp() / "ostree");
    ASSERT_EQ(turn(*loader_, {b_, a_}), "");
    clean_up();
    fs::remove_all(esp() / "ostree" / ("default-" + std::string(64, 'c')));
    EXPECT_TRUE(cut([&] { turn(*loader_, {c_, b_}, 3); }, point)) << point;
    const std::string up = boots();
    EXPECT_TRUE(up == b_ || up == c_) << point << ": " << up;
    // The new one is never unarmed, and when it does not come up, the old one does.
    if (up == c_) {
      EXPECT_EQ(loader_->trial().value()->left, 3u) << point;
      for (int i = 0; i < 3; ++i) start();
      EXPECT_EQ(boots(), b_) << point;
    }
    ASSERT_EQ(turn(*loader_, {c_, b_}), "") << point;
    clean_up();
    EXPECT_EQ(boots(), c_) << point;
    EXPECT_EQ(files().size(), 2u) << point;
  }
  EXPECT_TRUE(cut([&] { (void)loader_->end_trial(); }, "esp-trial-ended"));
  // Nothing is moved when the directory and the entries agree, so make them differ first.
  ASSERT_TRUE(loader_->prepare(next({b_, c_})));
  write({b_, c_});
  EXPECT_TRUE(cut([&] { (void)loader_->prepare(next({c_, b_})); }, "esp-repointed"));
  EXPECT_EQ(boots(), c_);
#endif
}

TEST_F(SystemdBootTest, AFailureInTheMiddleLeavesTheOldEntries) {
#ifndef RASUPD_FAILPOINTS
  GTEST_SKIP() << "no failpoints in this build: presets dev and asan have them";
#else
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  for (const char* point : {"esp-entry-written=nospace", "esp-entries-rewritten=error"}) {
    const auto before = files();
    ::setenv("RASUPD_FAILPOINT", point, 1);
    EXPECT_NE(turn(*loader_, {c_, b_}, 3), "");
    ::unsetenv("RASUPD_FAILPOINT");
    EXPECT_EQ(files(), before);
    EXPECT_EQ(boots(), b_);
    ASSERT_EQ(turn(*loader_, {b_, a_}), "");  // the restore
    clean_up();
    EXPECT_EQ(boots(), b_);
  }
#endif
}

TEST_F(SystemdBootTest, AFullEspIsRefusedWithBothFiguresAndUnchanged) {
  if (::geteuid() != 0 || ::unshare(CLONE_NEWNS) != 0 ||
      ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", esp().c_str(), "tmpfs", 0, "size=1200k") != 0) {
    GTEST_SKIP() << "needs a mount of its own: tests/run.sh runs as root";
  }
  fs::create_directories(entries());
  ASSERT_EQ(turn(*loader_, {a_}), "");
  const auto before = files();
  put(directory(b_) + "/usr/lib/modules/6.1.0/initramfs.img", std::string(2 << 20, 'x'));
  const auto refused = loader_->prepare(next({b_, a_}, 3));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::NoSpace);
  EXPECT_NE(refused.error().message.find("2.4 MB needed"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().message.find("1.2 MB free"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(loader_->check_space(500 << 10));
  const auto foreseen = loader_->check_space(2 << 20);  // at `upgrade`, before anything is downloaded
  ASSERT_FALSE(foreseen);
  EXPECT_EQ(foreseen.error().kind, Kind::NoSpace);
  EXPECT_EQ(files(), before);
  EXPECT_FALSE(fs::exists(esp() / "ostree" / ("default-" + std::string(64, 'b')) / "initramfs-6.1.0.img"));
  EXPECT_EQ(boots(), a_);
  const auto space = esp::space_for(esp(), {1, 5000});
  ASSERT_TRUE(space);
  EXPECT_EQ(space->needed, 3u * 4096 + (256u << 10));
  ::umount(esp().c_str());
}

TEST_F(SystemdBootTest, OtherSystemsFilesAreLeftAlone) {
  const std::string foreign(64, 'f');
  put("efi/loader/entries/windows.conf", "title Windows\nefi /EFI/w.efi\n");
  put("efi/loader/entries/ostree-1-other.conf", "title Other\nlinux /ostree/other-" + foreign + "/vmlinuz\n");
  put("efi/loader/entries/debian.conf.bak", "x");
  put("efi/ostree/other-" + foreign + "/vmlinuz", "x");
  put("efi/ostree/readme", "x");
  put("efi/loader/loader.conf", "timeout 3\n#default x\n");
  put("efi/loader/entries/ostree-0000000009.conf.AbCdEf", "half wri");
  put("efi/ostree/default-" + std::string(64, 'e') + "/vmlinuz-6.1.0", "left over");
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  EXPECT_EQ(boots(), b_);
  for (const char* kept : {"loader/entries/windows.conf", "loader/entries/ostree-1-other.conf",
                           "ostree/readme", "loader/entries/debian.conf.bak", "loader/loader.conf"}) {
    EXPECT_TRUE(fs::exists(esp() / kept)) << kept;
  }
  EXPECT_TRUE(fs::exists(esp() / ("ostree/other-" + foreign + "/vmlinuz")));
  EXPECT_FALSE(fs::exists(entries() / "ostree-0000000009.conf.AbCdEf"));
  EXPECT_FALSE(fs::exists(esp() / ("ostree/default-" + std::string(64, 'e'))));
}

TEST_F(SystemdBootTest, WhatDecidesInsteadOfTheEntriesIsRefused) {
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  const std::pair<const char*, bool> cases[] = {{"default windows.conf\n", false},
                                                {"timeout 1\ndefault @saved\n", false},
                                                {"default ostree-*\n", true},
                                                {"default OSTREE-*.conf\n", true},
                                                {"defaultx y\n", true},
                                                {"", true}};
  for (const auto& [line, fine] : cases) {
    put("efi/loader/loader.conf", line);
    const auto prepared = loader_->prepare(next({c_, b_}));
    EXPECT_EQ(prepared.has_value(), fine) << line;
    EXPECT_EQ(loader_->verify(directory(b_)).has_value(), fine) << line;
    if (!fine) {
      EXPECT_EQ(prepared.error().kind, Kind::Boot);
    }
  }
  put("efi/loader/entries/first.conf", "title First\nsort-key 0\nlinux /x\n");
  const auto prepared = loader_->prepare(next({c_, b_}));
  ASSERT_FALSE(prepared);
  EXPECT_NE(prepared.error().message.find("first.conf"), std::string::npos);
}

TEST_F(SystemdBootTest, VerifyReadsTheEspBack) {
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");
  const fs::path kernel = esp() / ("ostree/default-" + std::string(64, 'b') + "/vmlinuz-6.1.0");
  put(kernel, "kernel X");
  auto verified = loader_->verify(directory(b_));
  ASSERT_FALSE(verified);
  EXPECT_NE(verified.error().message.find("vmlinuz-6.1.0 differs"), std::string::npos)
      << verified.error().message;
  fs::remove(kernel);
  EXPECT_FALSE(loader_->verify(directory(b_)));
  ASSERT_EQ(turn(*loader_, {b_, a_}), "");  // heals it
  EXPECT_EQ(boots(), b_);
  const fs::path first = entries() / chosen()->file;
  std::string content = text(first);
  content.insert(content.find("options ") + 8, "init=/bin/sh ");
  put(first, content);
  EXPECT_FALSE(loader_->in_step().value());
  EXPECT_FALSE(loader_->verify(directory(b_)));
  fs::remove(first);
  EXPECT_FALSE(loader_->in_step().value());
}

TEST_F(SystemdBootTest, SharedKernelsAndTheBootPrefix) {
  const std::string d = deploy('d', 'a');
  ASSERT_EQ(turn(*loader_, {a_}), "");
  ASSERT_EQ(turn(*loader_, {d, a_}), "");
  EXPECT_EQ(boots(), d);
  const auto kernels = std::distance(fs::directory_iterator(esp() / "ostree"), fs::directory_iterator());
  EXPECT_EQ(kernels, 1);
  const std::string entry = "boot/loader/entries/ostree-2.conf";
  std::string content = text(entry);
  content.insert(content.find("linux ") + 6, "/boot");
  content.insert(content.find("initrd ") + 7, "/boot");
  put(entry, content);
  EXPECT_TRUE(loader_->in_step().value());
}

TEST(EspText, NamesAndEntries) {
  EXPECT_EQ(esp::file_name(7, std::nullopt), "ostree-0000000007.conf");
  EXPECT_EQ(esp::file_name(12, 3), "ostree-0000000012+3.conf");
  Entry entry;
  entry.title = "A\nlinux /evil";
  entry.kernel = "/boot/ostree/k";
  entry.options = "a\nb";
  entry.deployment = "id.0";
  EXPECT_EQ(esp::entry_text(entry, 3),
            "# rasupd-deployment id.0\ntitle A linux /evil\nversion 0000000003\nsort-key 0-rasupd\nlinux "
            "/ostree/k\n"
            "options a b\n");
}

}  // namespace
}  // namespace rasupd::boot
