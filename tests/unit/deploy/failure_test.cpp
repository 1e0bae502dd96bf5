// R123, R124, failpoints and odd states on a sysroot that is not booted.

#include <gmock/gmock.h>

#include "support/test_sysroot.hpp"

namespace rasupd {
namespace {

using testing_support::read;
using testing_support::shell;
using testing_support::TestSysroot;
using testing_support::write;
namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FailureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(init_sysroot(sysroot.world(), "default"));
    for (const char* version : {"1", "2"}) ASSERT_NE(sysroot.deploy(sysroot.commit(version), version), "");
  }
  std::string directories() const {
    return shell("ls -d " + sysroot.path("ostree/deploy/*/deploy/*.[0-9]")).out;
  }
  std::string menu() const {
    return shell("cd " + sysroot.path("boot/loader/entries") + " && grep . ostree-*").out;
  }
  TestSysroot sysroot;
};

TEST_F(FailureTest, UnmountedBootStopsEveryWriteAndDeletesNothing) {
  fs::rename(sysroot.path("boot"), sysroot.path("boot-away"));
  fs::create_directory(sysroot.path("boot"));
  const std::string before = directories();
  const HostState state = sysroot.state();
  ASSERT_EQ(state.problems.size(), 1u);
  EXPECT_THAT(state.problems[0], HasSubstr("/boot is not mounted or its entries are gone"));
  auto host = LockedHost::lock(sysroot.world());
  ASSERT_TRUE(host) << host.error().message;
  const auto cleaned = clean_deployments(*host, false);
  ASSERT_FALSE(cleaned);
  EXPECT_EQ(cleaned.error().kind, Kind::Boot);
  const auto deployed = deploy_image(*host, TestSysroot::image(sysroot.commit("3"), "3"));
  ASSERT_FALSE(deployed);
  EXPECT_EQ(deployed.error().kind, Kind::Boot);
  const auto rolled = rollback(*host);
  ASSERT_FALSE(rolled);
  EXPECT_EQ(rolled.error().kind, Kind::Boot);
  const auto space = check_boot_space(*host, 1);
  ASSERT_FALSE(space);
  EXPECT_EQ(space.error().kind, Kind::Boot);
  EXPECT_EQ(directories(), before);
  EXPECT_TRUE(fs::is_empty(sysroot.path("boot")));
}

TEST_F(FailureTest, AMissingDeploymentNamesEntryAndWayOut) {
  fs::remove_all(sysroot.path(sysroot.state().deployments[1].directory));
  const auto state = read_host(sysroot.world());
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().kind, Kind::Boot);
  EXPECT_THAT(state.error().message, HasSubstr("boot entry ostree-"));
  EXPECT_FALSE(state.error().hint.empty());
}

TEST_F(FailureTest, OddEntriesAndOriginsAreProblemsAndNothingIsCleaned) {
  write(sysroot.path(sysroot.state().deployments[0].directory + ".origin"), "not a key file");
  HostState state = sysroot.state();
  EXPECT_EQ(state.deployments.size(), 2u);
  ASSERT_EQ(state.problems.size(), 1u);
  EXPECT_THAT(state.problems[0], HasSubstr(".origin"));
  write(sysroot.path("boot/loader/entries/ostree-9.conf"), "title half");
  write(sysroot.path("boot/loader/entries/other.conf"), "title Other\n");
  state = sysroot.state();
  EXPECT_EQ(state.deployments.size(), 2u);
  EXPECT_EQ(state.problems.size(), 2u);
  const auto host = LockedHost::lock(sysroot.world());
  ASSERT_FALSE(host);
  EXPECT_EQ(host.error().kind, Kind::Boot);
}

TEST_F(FailureTest, AMissingKernelIsAProblemAndStopsTheCleanUp) {
  shell("rm " + sysroot.path("boot/ostree") + "/*/vmlinuz-*");
  EXPECT_EQ(sysroot.state().problems.size(), 2u);
  auto host = LockedHost::lock(sysroot.world());
  ASSERT_TRUE(host);
  EXPECT_FALSE(clean_deployments(*host, false));
  EXPECT_EQ(shell("ls -d " + sysroot.path("ostree/deploy/default/deploy") + "/*.0 | wc -l").out, "2\n");
  // A switch puts missing kernels back, and reads them back.
  const auto rolled = rollback(*host);
  ASSERT_TRUE(rolled) << rolled.error().message;
  EXPECT_TRUE(sysroot.state().problems.empty());
  EXPECT_TRUE(clean_deployments(*host, false));
}

TEST_F(FailureTest, AFailedReadBackRestoresTheFormerOrder) {
  const HostState before = sysroot.state();
  const std::string former = before.deployments[1].boot_checksum;
  write(sysroot.path("boot/ostree/default-" + former + "/initramfs-6.1.0.img.x"), "damaged");
  fs::rename(sysroot.path("boot/ostree/default-" + former + "/initramfs-6.1.0.img.x"),
             sysroot.path("boot/ostree/default-" + former + "/initramfs-6.1.0.img"));
  auto host = LockedHost::lock(sysroot.world());
  ASSERT_TRUE(host);
  const auto done = rollback(*host);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, Kind::Boot);
  EXPECT_THAT(done.error().message, HasSubstr("the former boot order was restored"));
  EXPECT_FALSE(done.error().changed);
  const HostState after = sysroot.state();
  EXPECT_EQ(after.deployments[0].directory, before.deployments[0].directory);
  EXPECT_EQ(after.deployments[1].directory, before.deployments[1].directory);
}

TEST_F(FailureTest, AFailedReadBackRestoresAnOrderThatTheSwitchHadShortened) {
  const HostState before = sysroot.state();
  ASSERT_EQ(before.deployments.size(), 2u);
  write(sysroot.path("boot/loader/entries/windows.conf"), "title Windows\nlinux /windows\n");
  const std::string commit = sysroot.commit("3");
  auto host = LockedHost::lock(sysroot.world());
  ASSERT_TRUE(host);
  ::setenv("RASUPD_FAILPOINT", "switch-written=error", 1);
  const auto done = deploy_image(*host, TestSysroot::image(commit, "3"));
  ::unsetenv("RASUPD_FAILPOINT");
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("the former boot order was restored"));
  EXPECT_FALSE(done.error().changed);
  const HostState after = sysroot.state();
  ASSERT_EQ(after.deployments.size(), 2u);
  EXPECT_EQ(after.deployments[0].directory, before.deployments[0].directory);
  EXPECT_EQ(after.deployments[1].directory, before.deployments[1].directory);
  EXPECT_TRUE(fs::exists(sysroot.path("boot/loader/entries/windows.conf")));
}

TEST_F(FailureTest, EveryFailpointLeavesTheOldDefaultAndTheNextRunConverges) {
  const std::string before = menu();
  const std::string commit = sysroot.commit("3");
  const auto directories = list_deployment_directories(sysroot.root());
  for (const char* point : {"deploy-checkout", "deploy-etc", "deploy-entries"}) {
    ::setenv("RASUPD_FAILPOINT", (std::string(point) + "=error").c_str(), 1);
    auto host = LockedHost::lock(sysroot.world());
    const auto done = deploy_image(*host, TestSysroot::image(commit, "3"));
    ASSERT_FALSE(done) << point;
    EXPECT_EQ(done.error().message, std::string("failpoint ") + point);
    EXPECT_EQ(menu(), before) << point;
    EXPECT_EQ(list_deployment_directories(sysroot.root()).value(), directories.value()) << point;
  }
  ::setenv("RASUPD_FAILPOINT", "rollback-entries=error", 1);
  {
    auto host = LockedHost::lock(sysroot.world());
    EXPECT_FALSE(rollback(*host));
    EXPECT_EQ(menu(), before);
  }
  ::unsetenv("RASUPD_FAILPOINT");
  ASSERT_NE(sysroot.deploy(commit, "3"), "");
  EXPECT_EQ(sysroot.state().deployments[0].version, "3");
  auto host = LockedHost::lock(sysroot.world());
  EXPECT_EQ(clean_deployments(*host, false)->size(), 1u);  // version 1
  EXPECT_EQ(shell("ostree fsck --repo=" + sysroot.path("ostree/repo")).code, 0);
}

TEST_F(FailureTest, BootSpaceIsAskedOfTheFileSystemOfBoot) {
  auto host = LockedHost::lock(sysroot.world());
  EXPECT_TRUE(check_boot_space(*host, std::uint64_t{1} << 60));  // one file system: kernels are hard links
}

}  // namespace
}  // namespace rasupd
