#pragma once
// A real sysroot in a temporary directory, and small image commits in it as the importer writes them. Needs
// root and the ostree program. Everything is gone with the object.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "deploy/deploy.hpp"
#include "fakes/fakes.hpp"

namespace rasupd::testing_support {

namespace fs = std::filesystem;

struct ShellResult {
  int code = -1;
  std::string out;  ///< standard output and error
};

inline ShellResult shell(const std::string& command) {
  ShellResult result;
  std::fflush(nullptr);
  FILE* pipe = ::popen(("{ " + command + "\n} 2>&1").c_str(), "r");
  if (!pipe) return result;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) result.out.append(buffer, n);
  const int status = ::pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

inline void write(const fs::path& path, const std::string& content) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

inline std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

class TestSysroot {
 public:
  TestSysroot() {
    ::setenv("OSTREE_SYSROOT_DEBUG", "mutable-deployments", 1);
    char name[] = "/tmp/rasupd-deploy-XXXXXX";
    base_ = ::mkdtemp(name);
    ::chmod(base_.c_str(), 0755);
    world_.sysroot = root();
  }
  ~TestSysroot() {
    ::unsetenv("RASUPD_FAILPOINT");
    shell("chattr -R -i " + base_.string());
    std::error_code ignored;
    fs::remove_all(base_, ignored);
  }
  TestSysroot(const TestSysroot&) = delete;

  std::string root() const { return base_ / "root"; }
  fs::path base() const { return base_; }
  std::string path(const std::string& relative) const { return root() + "/" + relative; }
  const World& world() const { return world_; }
  fakes::FakeClock& clock() { return clock_; }

  /// A commit of the standard tree; `edit` changes the tree first (its argument is the tree's root).
  std::string commit(const std::string& version, const std::function<void(const fs::path&)>& edit = {}) {
    const fs::path tree = base_ / "tree";
    fs::remove_all(tree);
    for (const char* directory :
         {"boot", "dev", "proc", "run", "sys", "sysroot", "tmp", "var", "usr/bin", "usr/etc"}) {
      fs::create_directories(tree / directory);
    }
    for (const char* link : {"bin", "sbin", "lib", "lib64"})
      fs::create_directory_symlink("usr/" + std::string(link), tree / link);
    fs::create_directory_symlink("sysroot/ostree", tree / "ostree");
    write(tree / "usr/lib/modules/6.1.0/vmlinuz", "kernel of " + version);
    write(tree / "usr/lib/modules/6.1.0/initramfs.img", "initramfs of " + version);
    write(tree / "usr/lib/os-release",
          "ID=test\nNAME=Test\nVERSION_ID=" + version + "\nPRETTY_NAME=\"Test " + version + "\"\n");
    write(tree / "usr/etc/motd", "welcome to " + version + "\n");
    write(tree / "usr/etc/app.conf", "level=1\n");
    write(tree / "usr/etc/passwd", "root:x:0:0::/root:/bin/sh\n");
    if (edit) edit(tree);
    const std::string config =
        "{\"architecture\":\"amd64\",\"os\":\"linux\",\"created\":\"2026-01-02T03:04:05Z\","
        "\"config\":{\"Labels\":{\"org.opencontainers.image.version\":\"" +
        version + "\"}}}";
    const ShellResult made =
        shell("ostree --repo=" + path("ostree/repo") + " commit --orphan --tree=dir=" + tree.string() +
              " --owner-uid=0 --owner-gid=0 --timestamp='2026-01-01 00:00:00 +0000'" +
              " --add-metadata-string=version=" + version + " --add-metadata-string=ostree.manifest-digest=" +
              digest(version) + " --add-metadata-string='ostree.container.image-config=" + config + "'");
    EXPECT_EQ(made.code, 0) << made.out;
    std::string id = made.out.substr(0, made.out.find('\n'));
    shell("ostree --repo=" + path("ostree/repo") + " refs --create=test/" + version + " " + id);
    return id;
  }

  /// A made-up manifest digest for a version: distinct, valid.
  static std::string digest(const std::string& version) {
    std::string hex;
    for (const char c : version) {
      char two[3];
      std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c));
      hex += two;
    }
    return "sha256:" + (hex + std::string(64, '0')).substr(0, 64);
  }

  static NewDeployment image(const std::string& commit, const std::string& version) {
    NewDeployment what;
    what.commit = commit;
    what.tracked = Reference::parse("registry.example/os:stable").value();
    what.manifest_digest = digest(version);
    what.index_digest = digest("index-" + version);
    what.signature_rule = "docker:registry.example/os";
    what.signature_key = "/usr/share/keys/os.pub";
    what.signature_carrier = "tag sha256-00.sig, layer 0";
    return what;
  }

  /// Locks, deploys, unlocks. The directory, empty when staged.
  std::string deploy(const std::string& commit, const std::string& version) {
    auto host = LockedHost::lock(world());
    EXPECT_TRUE(host) << host.error().message;
    if (!host) return {};
    auto done = deploy_image(*host, image(commit, version));
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    return done ? done->directory : std::string();
  }

  HostState state() const {
    auto state = read_host(world());
    EXPECT_TRUE(state) << (state ? "" : state.error().message);
    return state ? *state : HostState{};
  }

  std::string admin_status() const { return shell("ostree admin --sysroot=" + root() + " status").out; }

 private:
  fs::path base_;
  fakes::FakeClock clock_;
  fakes::FakeRunner runner_;
  fakes::NullProgress progress_;
  World world_{.sysroot = "", .clock = clock_, .runner = runner_, .progress = progress_};
};

}  // namespace rasupd::testing_support
