// The booted half, inside a faked boot: staging, finalizing, holding back, rolling back.

#include <gmock/gmock.h>

#include "support/test_sysroot.hpp"

namespace rasupd {
namespace {

using testing_support::read;
using testing_support::shell;
using testing_support::ShellResult;
using testing_support::TestSysroot;
using testing_support::write;
namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class BootedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(init_sysroot(sysroot.world(), "default"));
    ASSERT_NE(sysroot.deploy(sysroot.commit("1"), "1"), "");
    write(sysroot.path("ostree/deploy/default/var/lib/app"), "precious");
    two = sysroot.commit("2");
  }
  /// Boots the first entry and runs `script` there; d is the driver on /.
  ShellResult boot(const std::string& script) {
    return shell("FAKE_BOOT_BIND=" BIN " " SUPPORT "/fake_boot.sh " + sysroot.root() +
                 " /bin/sh -c 'd() { /run/bind/deploy_driver / \"$@\"; }; " + script + "'");
  }
  std::string etc(std::size_t index, const std::string& name) {
    return read(sysroot.path(sysroot.state().deployments.at(index).directory + "/etc/" + name));
  }
  TestSysroot sysroot;
  std::string two;
};

TEST_F(BootedTest, KnowsWhatIsBooted) {
  const ShellResult run = boot("d state");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(
      run.out,
      HasSubstr("running true\nbooted 0\nstaged -\nfirst 0\nrollback -\nqueued false\ndeployment 1 booted"));
  EXPECT_THAT(run.out, Not(HasSubstr("problem")));
}

TEST_F(BootedTest, StageEditFinalize) {
  const ShellResult run =
      boot("echo before >/etc/one; d stage " + two +
           " && d state && ostree admin status && echo after >/etc/two && "
           "d finalize && d state && ostree admin status; cat /run/systemctl.log; ls /run/ostree");
  EXPECT_THAT(run.out, HasSubstr("staged true\n"));
  EXPECT_THAT(run.out, HasSubstr("booted 1\nstaged 0\nfirst 1\n"));
  EXPECT_THAT(run.out, HasSubstr("default " + two + ".0 (staged)"));
  EXPECT_THAT(run.out, HasSubstr("finalized true\n"));
  EXPECT_THAT(run.out, HasSubstr("booted 1\nstaged -\nfirst 0\nrollback 1\nqueued true\n"));
  EXPECT_THAT(run.out, Not(HasSubstr("staged-deployment"))) << run.out;
  EXPECT_EQ(sysroot.state().deployments[0].version, "2") << run.out;
  EXPECT_EQ(etc(0, "one"), "before\n");
  EXPECT_EQ(etc(0, "two"), "after\n");
  EXPECT_EQ(etc(0, "motd"), "welcome to 2\n");
  EXPECT_EQ(read(sysroot.path("ostree/deploy/default/var/lib/app")), "precious");
  EXPECT_EQ(sysroot.state().deployments[0].origin, "ostree-image-signed:docker://registry.example/os:stable");
  const ShellResult next = boot("d state");
  EXPECT_THAT(next.out,
              HasSubstr("booted 0\nstaged -\nfirst 0\nrollback 1\nqueued false\ndeployment 2 booted"))
      << next.out;
  EXPECT_EQ(shell("ostree fsck --repo=" + sysroot.path("ostree/repo")).code, 0);
}

TEST_F(BootedTest, ALockedStageIsHeldBackUntilReleased) {
  const ShellResult run =
      boot("d stage " + two + " locked && d state && d finalize && d unlock && d finalize");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("deployment 2 staged locked"));
  EXPECT_THAT(run.out, HasSubstr("finalized false\nfinalized true\n"));
  EXPECT_EQ(sysroot.state().deployments[0].version, "2");
}

TEST_F(BootedTest, UnstageAndRestage) {
  const ShellResult run = boot("d stage " + two + " locked && d unstage && d state && d unstage && d stage " +
                               two + " && d state; ls /run/ostree");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("unstaged true\nrunning true\nbooted 0\nstaged -\n"));
  EXPECT_THAT(run.out, HasSubstr("unstaged false\n"));
  EXPECT_THAT(run.out, HasSubstr("deployment 2 staged ["));
  EXPECT_THAT(run.out, Not(HasSubstr("staged-deployment-locked")));
  EXPECT_EQ(sysroot.state().deployments[0].version, "1");  // a power cut forgets a stage
}

TEST_F(BootedTest, AConflictAtFinalizeKeepsTheOldDefaultAndLibostreeOut) {
  const std::string clash =
      sysroot.commit("3", [](const fs::path& tree) { write(tree / "usr/etc/thing/in", "x"); });
  const ShellResult run =
      boot("d stage " + clash + " && echo local >/etc/thing && d plan " + clash +
           "; d finalize; echo code $?; d state; ostree admin finalize-staged; ostree admin status");
  EXPECT_THAT(run.out, HasSubstr("conflict thing"));
  EXPECT_THAT(run.out, HasSubstr("code 9"));
  EXPECT_THAT(run.out, HasSubstr("deployment 3 staged locked"));
  EXPECT_EQ(sysroot.state().deployments.size(), 1u) << run.out;
  EXPECT_EQ(sysroot.state().deployments[0].version, "1");
}

TEST_F(BootedTest, RollbackFromEitherSideTwiceIsTheStart) {
  ASSERT_EQ(boot("d stage " + two + " && d finalize").code, 0);
  const ShellResult run = boot("d rollback && d state && d rollback && d state");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(
      run.out,
      HasSubstr(
          "next 1 left 2 dropped -\nrunning true\nbooted 1\nstaged -\nfirst 0\nrollback 1\nqueued true\n"));
  EXPECT_THAT(
      run.out,
      HasSubstr(
          "next 2 left 1 dropped -\nrunning true\nbooted 0\nstaged -\nfirst 0\nrollback 1\nqueued false\n"));
  ASSERT_EQ(boot("d rollback").code, 0);
  const ShellResult back = boot("d state && d stage " + two + " && d rollback");
  EXPECT_THAT(back.out,
              HasSubstr("booted 0\nstaged -\nfirst 0\nrollback 1\nqueued false\ndeployment 1 booted"));
  EXPECT_THAT(back.out, HasSubstr("next 2 left 1 dropped 2"));
}

TEST_F(BootedTest, CleanUpKeepsBootedRollbackStagedAndPinned) {
  ASSERT_EQ(boot("d pin 0 && d stage " + two + " && d finalize").code, 0);
  const std::string three = sysroot.commit("3");
  ASSERT_EQ(boot("d stage " + three + " && d finalize").code, 0);
  const ShellResult run = boot("d stage " + two + " && d clean && d state && d finalize && d state");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, Not(HasSubstr("removed"))) << run.out;
  EXPECT_THAT(run.out, HasSubstr("staged 0\n"));
  // The former rollback stays until the new default has booted and is cleaned up behind.
  ASSERT_EQ(sysroot.state().deployments.size(), 4u);
  ASSERT_EQ(boot("d clean").code, 0);
  ASSERT_EQ(sysroot.state().deployments.size(), 3u);
  const HostState state = sysroot.state();
  EXPECT_EQ(state.deployments[0].version, "2");
  EXPECT_FALSE(state.deployments[0].pinned);
  EXPECT_EQ(state.deployments[1].version, "3");
  EXPECT_TRUE(state.deployments[2].pinned);
}

TEST_F(BootedTest, AKilledFinalizeBootsTheOldOneAndTheNextConverges) {
  for (const char* point : {"deploy-checkout", "deploy-etc", "deploy-entries"}) {
    const ShellResult run = boot("export RASUPD_FAILPOINT=" + std::string(point) + "=kill; d stage " + two +
                                 "; d finalize; echo end");
    EXPECT_THAT(run.out, HasSubstr("end"));
    EXPECT_EQ(sysroot.state().deployments[0].version, "1") << point << run.out;
  }
  const ShellResult cut =
      boot("RASUPD_FAILPOINT=stage-written=kill /run/bind/deploy_driver / stage " + two + "; d state");
  EXPECT_THAT(cut.out, HasSubstr("staged 0\n"));  // written is written
  EXPECT_EQ(sysroot.state().deployments[0].version, "1");
  ASSERT_EQ(boot("d stage " + two + " && d finalize && d clean").code, 0);
  EXPECT_EQ(sysroot.state().deployments[0].version, "2");
}

}  // namespace
}  // namespace rasupd
