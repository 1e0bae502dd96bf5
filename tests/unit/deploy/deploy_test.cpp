// Deploying on a sysroot that is not booted, against real libostree sysroots.

#include <gmock/gmock.h>

#include <algorithm>

#include "base/text.hpp"
#include "support/test_sysroot.hpp"

namespace rasupd {
namespace {

using testing_support::read;
using testing_support::shell;
using testing_support::TestSysroot;
using testing_support::write;
namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> versions(const HostState& state) {
  std::vector<std::string> out;
  for (const Deployment& deployment : state.deployments) out.push_back(deployment.version);
  return out;
}

/// Every path beneath with type, mode, owner, size, content and times.
std::string fingerprint(const fs::path& directory) {
  return shell("cd " + directory.string() +
               " && find . -printf '%p %y %m %U %G %s %T@ %C@ %l\\n' | sort && find . -type f | sort | xargs "
               "-r sha256sum")
      .out;
}

class DeployTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto made = init_sysroot(sysroot.world(), "default");
    ASSERT_TRUE(made) << made.error().message;
  }
  void install(const std::string& version) {
    ASSERT_NE(sysroot.deploy(sysroot.commit(version), version), "");
  }
  std::string etc(std::size_t index, const std::string& name) {
    return sysroot.path(sysroot.state().deployments.at(index).directory + "/etc/" + name);
  }
  TestSysroot sysroot;
};

TEST(ReadHost, ADirectoryWithoutOstreeIsAStateAndNothingIsMade) {
  TestSysroot sysroot;
  fs::create_directories(sysroot.root());
  const HostState state = sysroot.state();
  EXPECT_FALSE(state.ostree);
  EXPECT_FALSE(state.running);
  EXPECT_TRUE(state.problems.empty());
  EXPECT_EQ(state.current(), nullptr);
  EXPECT_TRUE(fs::is_empty(sysroot.root()));
  const auto locked = LockedHost::lock(sysroot.world());
  ASSERT_FALSE(locked);
  EXPECT_EQ(locked.error().kind, Kind::Boot);
  EXPECT_TRUE(fs::is_empty(sysroot.root()));
}

TEST_F(DeployTest, InitMakesABareRepositoryWithoutForeignBootloaderAndAnEmptyVar) {
  const std::string config = read(sysroot.path("ostree/repo/config"));
  EXPECT_THAT(config, HasSubstr("mode=bare\n"));
  EXPECT_THAT(config, HasSubstr("bootloader=none"));
  EXPECT_THAT(config, HasSubstr("readonly=true"));
  EXPECT_TRUE(fs::is_directory(sysroot.path("boot")));
  EXPECT_TRUE(fs::is_empty(sysroot.path("ostree/deploy/default/var")));
  EXPECT_EQ(fs::status(sysroot.path("ostree/deploy/default/var")).permissions(), fs::perms(0755));
  EXPECT_TRUE(sysroot.state().deployments.empty());
}

TEST_F(DeployTest, InitAgainChangesNothing) {
  write(sysroot.path("ostree/deploy/default/var/log/keep"), "x");
  shell("ostree --repo=" + sysroot.path("ostree/repo") + " config set sysroot.bootloader grub2");
  const std::string before = fingerprint(sysroot.path("ostree/deploy/default"));
  ASSERT_TRUE(init_sysroot(sysroot.world(), "default"));
  EXPECT_EQ(fingerprint(sysroot.path("ostree/deploy/default")), before);
  EXPECT_THAT(read(sysroot.path("ostree/repo/config")), HasSubstr("bootloader=grub2"));
}

TEST_F(DeployTest, FirstInstallation) {
  auto host = LockedHost::lock(sysroot.world());
  ASSERT_TRUE(host) << host.error().message;
  NewDeployment what = TestSysroot::image(sysroot.commit("1",
                                                         [](const fs::path& tree) {
                                                           write(tree / "usr/lib/bootc/kargs.d/10.toml",
                                                                 "kargs = [\"quiet\", \"console=ttyS0\"]\n");
                                                         }),
                                          "1");
  what.add_kargs = {"root=LABEL=root", "quiet"};
  const auto done = deploy_image(*host, what);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_FALSE(done->staged);
  EXPECT_TRUE(done->warnings.empty());
  const HostState state = sysroot.state();
  EXPECT_EQ(host->state().deployments.size(), 1u);
  ASSERT_EQ(state.deployments.size(), 1u);
  const Deployment& first = state.deployments[0];
  EXPECT_EQ(first.directory, done->directory);
  EXPECT_EQ(first.checksum, what.commit);
  EXPECT_THAT(first.kargs, ElementsAre("quiet", "console=ttyS0", "root=LABEL=root"));
  EXPECT_EQ(first.version, "1");
  EXPECT_EQ(first.architecture, "amd64");
  EXPECT_EQ(first.timestamp, 1767323045);
  EXPECT_EQ(first.manifest_digest, TestSysroot::digest("1"));
  EXPECT_EQ(first.index_digest, TestSysroot::digest("index-1"));
  EXPECT_EQ(first.signature_rule, "docker:registry.example/os");
  EXPECT_EQ(first.signature_key, "/usr/share/keys/os.pub");
  EXPECT_EQ(first.signature_carrier, "tag sha256-00.sig, layer 0");
  ASSERT_TRUE(first.image);
  EXPECT_EQ(first.image->str(), "registry.example/os:stable");
  EXPECT_FALSE(first.booted || first.staged || first.pinned || first.locked);
  EXPECT_EQ(state.first, 0u);
  EXPECT_FALSE(state.booted || state.staged || state.rollback);
  EXPECT_FALSE(state.running || state.rollback_queued);
  EXPECT_TRUE(state.problems.empty());
  EXPECT_EQ(read(sysroot.path(first.directory + "/etc/motd")), "welcome to 1\n");
  EXPECT_THAT(sysroot.admin_status(), HasSubstr("default " + what.commit + ".0"));
}

TEST_F(DeployTest, OriginIsWhatOstreeExtReadsAndOursBesideIt) {
  install("1");
  const std::string origin = read(sysroot.path(sysroot.state().deployments[0].directory + ".origin"));
  EXPECT_THAT(
      origin,
      HasSubstr(
          "[origin]\ncontainer-image-reference=ostree-image-signed:docker://registry.example/os:stable\n"));
  EXPECT_THAT(origin, HasSubstr("[rasupd]\nformat=1\nmanifest-digest=" + TestSysroot::digest("1") +
                                "\nindex-digest=" + TestSysroot::digest("index-1")));
}

TEST_F(DeployTest, UpgradeMergesEtcKeepsVarAndTheFormerAsRollback) {
  install("1");
  write(etc(0, "app.conf"), "level=9\n");
  write(etc(0, "machine-id"), "0123\n");
  fs::remove(etc(0, "passwd"));
  write(sysroot.path("ostree/deploy/default/var/lib/app/data"), "precious");
  const std::string var = fingerprint(sysroot.path("ostree/deploy/default/var"));
  const std::string old_etc = fingerprint(etc(0, ""));
  const std::string commit = sysroot.commit("2", [](const fs::path& tree) {
    write(tree / "usr/etc/app.conf", "level=2\n");
    write(tree / "var/lib/image-junk", "x");
  });
  sysroot.deploy(commit, "2");
  EXPECT_EQ(fingerprint(sysroot.path("ostree/deploy/default/var")), var);
  const HostState state = sysroot.state();
  EXPECT_THAT(versions(state), ElementsAre("2", "1"));
  EXPECT_EQ(state.rollback, 1u);
  EXPECT_EQ(read(etc(0, "app.conf")), "level=9\n");
  EXPECT_EQ(read(etc(0, "machine-id")), "0123\n");
  EXPECT_EQ(read(etc(0, "motd")), "welcome to 2\n");
  EXPECT_FALSE(fs::exists(etc(0, "passwd")));
  EXPECT_FALSE(fs::exists(sysroot.path(state.deployments[0].directory + "/etc.rasupd-new")));
  EXPECT_EQ(fingerprint(etc(1, "")), old_etc);
  EXPECT_EQ(shell("ostree fsck --repo=" + sysroot.path("ostree/repo")).code, 0);
}

TEST_F(DeployTest, TheThirdDropsTheFirstFromTheEntriesAndOnlyCleanUpFromTheDisk) {
  for (const char* version : {"1", "2", "3"}) install(version);
  EXPECT_THAT(versions(sysroot.state()), ElementsAre("3", "2"));
  EXPECT_EQ(list_deployment_directories(sysroot.root())->size(), 3u);
  auto host = LockedHost::lock(sysroot.world());
  const auto listed = clean_deployments(*host, true);
  ASSERT_TRUE(listed) << listed.error().message;
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ((*listed)[0].version, "1");
  EXPECT_EQ(list_deployment_directories(sysroot.root())->size(), 3u);
  const auto removed = clean_deployments(*host, false);
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(removed->size(), 1u);
  EXPECT_EQ(list_deployment_directories(sysroot.root())->size(), 2u);
  EXPECT_THAT(versions(sysroot.state()), ElementsAre("3", "2"));
  EXPECT_EQ(shell("ls " + sysroot.path("boot/ostree")).out,
            shell("ls -d " + sysroot.path("boot/ostree") + "/default-* | xargs -n1 basename").out);
  EXPECT_EQ(split(std::string(trim(shell("ls " + sysroot.path("boot/ostree")).out)), '\n').size(), 2u)
      << shell("cd " + sysroot.path("boot") + " && find ostree ../ostree/boot.* && cat loader/entries/*").out;
  EXPECT_THAT(shell("ostree --repo=" + sysroot.path("ostree/repo") + " refs").out,
              ::testing::ContainsRegex("ostree/[01]/[01]/1"));
}

TEST_F(DeployTest, RollbackTwiceIsWhereItStarted) {
  install("1");
  install("2");
  const std::string etc_one = fingerprint(etc(1, "")), etc_two = fingerprint(etc(0, ""));
  auto host = LockedHost::lock(sysroot.world());
  ASSERT_TRUE(host);
  auto once = rollback(*host);
  ASSERT_TRUE(once) << once.error().message;
  EXPECT_EQ(once->next.version, "1");
  ASSERT_TRUE(once->left);
  EXPECT_EQ(once->left->version, "2");
  EXPECT_FALSE(once->dropped_staged);
  EXPECT_THAT(versions(host->state()), ElementsAre("1", "2"));
  EXPECT_THAT(versions(sysroot.state()), ElementsAre("1", "2"));
  EXPECT_EQ(fingerprint(etc(0, "")), etc_one);
  auto twice = rollback(*host);
  ASSERT_TRUE(twice) << twice.error().message;
  EXPECT_EQ(twice->next.version, "2");
  EXPECT_THAT(versions(sysroot.state()), ElementsAre("2", "1"));
  EXPECT_EQ(fingerprint(etc(0, "")), etc_two);
  EXPECT_TRUE(sysroot.state().problems.empty());
}

TEST_F(DeployTest, RollbackWithoutTargetIsBootAndChangesNothing) {
  install("1");
  const std::string boot = fingerprint(sysroot.path("boot"));
  auto host = LockedHost::lock(sysroot.world());
  const auto done = rollback(*host);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, Kind::Boot);
  EXPECT_EQ(fingerprint(sysroot.path("boot")), boot);
}

TEST_F(DeployTest, APinKeepsOneDeploymentAndDoesNotLeak) {
  install("1");
  {
    auto host = LockedHost::lock(sysroot.world());
    ASSERT_TRUE(set_pinned(*host, 0, true));
    EXPECT_TRUE(host->state().deployments[0].pinned);
    const auto missing = set_pinned(*host, 5, true);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().kind, Kind::Usage);
  }
  for (const char* version : {"2", "3", "4"}) install(version);
  HostState state = sysroot.state();
  EXPECT_THAT(versions(state), ElementsAre("4", "3", "1"));
  EXPECT_FALSE(state.deployments[0].pinned);
  EXPECT_FALSE(state.deployments[1].pinned);
  EXPECT_TRUE(state.deployments[2].pinned);
  auto host = LockedHost::lock(sysroot.world());
  ASSERT_TRUE(clean_deployments(*host, false));
  EXPECT_THAT(versions(sysroot.state()), ElementsAre("4", "3", "1"));
  ASSERT_TRUE(set_pinned(*host, 2, false));
  const auto removed = clean_deployments(*host, false);
  ASSERT_TRUE(removed) << removed.error().message;
  ASSERT_EQ(removed->size(), 1u);
  EXPECT_EQ((*removed)[0].version, "1");
  EXPECT_THAT(versions(sysroot.state()), ElementsAre("4", "3"));
}

TEST_F(DeployTest, KernelArgumentsFollowTheImagesDifferenceAndKeepTheMachines) {
  const auto with = [](const char* kargs) {
    return [kargs](const fs::path& tree) { write(tree / "usr/lib/bootc/kargs.d/10.toml", kargs); };
  };
  auto host = LockedHost::lock(sysroot.world());
  NewDeployment one = TestSysroot::image(sysroot.commit("1", with("kargs = [\"a=1\", \"b=1\"]\n")), "1");
  one.add_kargs = {"root=/dev/x"};
  ASSERT_TRUE(deploy_image(*host, one));
  NewDeployment two = TestSysroot::image(sysroot.commit("2", with("kargs = [\"a=1\", \"c=1\"]\n")), "2");
  two.add_kargs = {"root=/dev/x", "panic=10"};
  ASSERT_TRUE(deploy_image(*host, two));
  auto kargs = sysroot.state().deployments[0].kargs;
  std::sort(kargs.begin(), kargs.end());
  EXPECT_THAT(kargs, ElementsAre("a=1", "c=1", "panic=10", "root=/dev/x"));
  ASSERT_TRUE(deploy_image(*host, TestSysroot::image(sysroot.commit("3"), "3")));
  kargs = sysroot.state().deployments[0].kargs;
  std::sort(kargs.begin(), kargs.end());
  EXPECT_THAT(kargs, ElementsAre("panic=10", "root=/dev/x"));
}

TEST_F(DeployTest, AnEtcConflictLeavesTheOldDefault) {
  install("1");
  write(etc(0, "thing"), "a local file");
  const std::string commit =
      sysroot.commit("2", [](const fs::path& tree) { write(tree / "usr/etc/thing/inner", "x"); });
  auto host = LockedHost::lock(sysroot.world());
  const auto plan = plan_etc_for(*host, commit);
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->conflicts.size(), 1u);
  const std::string boot = fingerprint(sysroot.path("boot"));
  const auto done = deploy_image(*host, TestSysroot::image(commit, "2"));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, Kind::Unsuitable);
  EXPECT_THAT(done.error().message, HasSubstr("/etc/thing"));
  EXPECT_EQ(fingerprint(sysroot.path("boot")), boot);
  EXPECT_THAT(versions(sysroot.state()), ElementsAre("1"));
  EXPECT_EQ(list_deployment_directories(sysroot.root())->size(), 1u);
}

TEST_F(DeployTest, PlanEtcLeavesNothingBehindAndIsEmptyOnAFreshSysroot) {
  const std::string commit = sysroot.commit("1");
  auto host = LockedHost::lock(sysroot.world());
  const auto fresh = plan_etc_for(*host, commit);
  ASSERT_TRUE(fresh);
  EXPECT_TRUE(fresh->changes.empty());
  ASSERT_TRUE(deploy_image(*host, TestSysroot::image(commit, "1")));
  write(etc(0, "motd"), "mine\n");
  const auto plan = plan_etc_for(*host, sysroot.commit("2"));
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->changes.size(), 1u);
  EXPECT_EQ(plan->changes[0].path, "motd");
  EXPECT_EQ(shell("ls -d " + sysroot.path("ostree/repo/tmp") + "/rasupd-*").code, 2);
}

TEST_F(DeployTest, ASecondUpdaterIsBusy) {
  install("1");
  const auto held = LockedHost::lock(sysroot.world());
  ASSERT_TRUE(held);
  const auto second = LockedHost::lock(sysroot.world());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, Kind::Busy);
  EXPECT_THAT(versions(sysroot.state()), ElementsAre("1"));  // reading needs no lock
}

TEST_F(DeployTest, ForeignEntriesSurviveEverySwitch) {
  install("1");
  write(sysroot.path("boot/loader/entries/windows.conf"), "title Windows\n");
  for (const char* version : {"2", "3", "4"}) {
    install(version);
    EXPECT_EQ(read(sysroot.path("boot/loader/entries/windows.conf")), "title Windows\n") << version;
  }
  auto host = LockedHost::lock(sysroot.world());
  ASSERT_TRUE(rollback(*host));
  EXPECT_EQ(read(sysroot.path("boot/loader/entries/windows.conf")), "title Windows\n");
  ASSERT_TRUE(clean_deployments(*host, false));
  EXPECT_EQ(read(sysroot.path("boot/loader/entries/windows.conf")), "title Windows\n");
}

TEST_F(DeployTest, AnotherStaterootsDeploymentStays) {
  install("1");
  ASSERT_TRUE(init_sysroot(sysroot.world(), "other"));
  NewDeployment other = TestSysroot::image(sysroot.commit("o"), "o");
  other.stateroot = "other";
  {
    auto host = LockedHost::lock(sysroot.world());
    ASSERT_TRUE(deploy_image(*host, other));
    ASSERT_FALSE(rollback(*host).has_value());  // the only target belongs to another system
  }
  EXPECT_THAT(versions(sysroot.state()), ElementsAre("o", "1"));
  other.commit = sysroot.commit("p");
  auto host = LockedHost::lock(sysroot.world());
  ASSERT_TRUE(deploy_image(*host, other));
  ASSERT_TRUE(clean_deployments(*host, false));
  EXPECT_THAT(versions(sysroot.state()), ElementsAre("p", "o", "1"));
}

TEST_F(DeployTest, TheImmutableBitIsBackAfterTheMerge) {
  ::unsetenv("OSTREE_SYSROOT_DEBUG");
  install("1");
  write(etc(0, "local"), "x");
  install("2");
  EXPECT_THAT(shell("lsattr -d " + sysroot.path(sysroot.state().deployments[0].directory)).out,
              ::testing::ContainsRegex("^-+i"));
  EXPECT_EQ(read(etc(0, "local")), "x");
}

}  // namespace
}  // namespace rasupd
