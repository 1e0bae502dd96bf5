#pragma once
// A sysroot as libostree leaves it, in plain files: deployments, boot links, entries, and the switch of both
// in one rename. Backends are driven through the very calls of the deploy transaction.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "bootloader/bootloader.hpp"

namespace rasupd::boot {

namespace fs = std::filesystem;

class BootKit : public ::testing::Test {
 protected:
  BootKit() {
    char name[] = "/tmp/rasupd-boot-XXXXXX";
    root_ = ::mkdtemp(name);
    fs::create_directories(root_ / "boot/ostree");
  }
  ~BootKit() override { fs::remove_all(root_); }

  void put(const fs::path& path, const std::string& content) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::trunc) << content;
  }
  std::string text(const fs::path& path) const {
    std::ifstream in(root_ / path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string root() const { return root_; }

  /// A deployment named by a letter, with a kernel of its own (or `kernel`'s), and its copies in /boot.
  /// Returns its id.
  std::string deploy(char letter, char kernel = 0) {
    const std::string id = std::string(64, letter) + ".0", checksum(64, kernel ? kernel : letter);
    const fs::path modules = fs::path(directory(id)) / "usr/lib/modules/6.1.0";
    const std::string tag(1, kernel ? kernel : letter);
    put(modules / "vmlinuz", "kernel " + tag);
    put(modules / "initramfs.img", "initramfs " + tag + std::string(5000, 'i'));
    put("boot/ostree/default-" + checksum + "/vmlinuz-6.1.0", "kernel " + tag);
    put("boot/ostree/default-" + checksum + "/initramfs-6.1.0.img", text(modules / "initramfs.img"));
    kernels_[id] = checksum;
    return id;
  }
  static std::string directory(const std::string& id) { return "ostree/deploy/default/deploy/" + id; }

  /// The menu that libostree's next switch writes.
  Next next(const std::vector<std::string>& ids, unsigned tries = 0) const {
    Next out;
    out.boot_version = version() == 1 ? 0 : 1;
    std::map<std::string, int> serials;
    for (const std::string& id : ids) {
      Entry entry;
      const std::string& checksum = kernels_.at(id);
      entry.title = "Image " + id.substr(0, 1);
      entry.stateroot = "default";
      entry.boot_checksum = checksum;
      entry.deployment = id;
      entry.kernel = "/ostree/default-" + checksum + "/vmlinuz-6.1.0";
      entry.initrd = "/ostree/default-" + checksum + "/initramfs-6.1.0.img";
      entry.ostree = "/ostree/boot." + std::to_string(out.boot_version) + "/default/" + checksum + "/" +
                     std::to_string(serials[checksum]++);
      entry.options = "root=LABEL=root quiet=\"a b\" ostree=" + entry.ostree;
      out.entries.push_back(std::move(entry));
    }
    if (tries > 0) out.trial = Trial{ids.front(), tries};
    return out;
  }

  /// libostree's part of the switch: links and entries of the other boot version, then one rename. Files of a
  /// backend in loader.N stay; the former boot.N stays until clean_up().
  void write(const std::vector<std::string>& ids) {
    const Next menu = next(ids);
    const std::string number = std::to_string(menu.boot_version);
    fs::remove_all(root_ / ("ostree/boot." + number));
    fs::remove_all(root_ / ("boot/loader." + number) / "entries");
    for (std::size_t i = 0; i < menu.entries.size(); ++i) {
      const Entry& entry = menu.entries[i];
      const fs::path link = root_ / entry.ostree.substr(1);
      fs::create_directories(link.parent_path());
      fs::create_symlink("../../../deploy/default/deploy/" + entry.deployment, link);
      const std::string rank = std::to_string(ids.size() - i);
      put("boot/loader." + number + "/entries/ostree-" + rank + ".conf",
          "title ostree:" + rank + "\nversion " + rank + "\noptions " + entry.options + "\nlinux " +
              entry.kernel + "\ninitrd " + entry.initrd + "\n");
    }
    fs::remove(root_ / "boot/loader.new");
    fs::create_directory_symlink("loader." + number, root_ / "boot/loader.new");
    fs::rename(root_ / "boot/loader.new", root_ / "boot/loader");
  }
  /// What libostree removes once everything is done.
  void clean_up() {
    const std::string other = std::to_string(1 - version());
    fs::remove_all(root_ / ("ostree/boot." + other));
    fs::remove_all(root_ / ("boot/loader." + other));
  }

  /// The deploy transaction's switch; the text of the error, empty when all went well.
  std::string turn(Bootloader& loader, const std::vector<std::string>& ids, unsigned tries = 0) {
    const Menu before = loader.read().value();
    const Next menu = next(ids, tries);
    if (const auto done = loader.prepare(menu); !done) return "prepare: " + done.error().message;
    write(ids);
    if (const auto done = loader.finish(before, menu); !done) return "finish: " + done.error().message;
    if (const auto done = loader.verify(directory(ids.front())); !done)
      return "verify: " + done.error().message;
    return "";
  }
  /// The same in a process of its own with a failpoint armed. True when it was killed there.
  bool cut(const std::function<void()>& work, const std::string& failpoint) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("RASUPD_FAILPOINT", (failpoint + "=kill").c_str(), 1);
      work();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status);
  }

  int version() const {
    std::error_code error;
    const std::string target = fs::read_symlink(root_ / "boot/loader", error).string();
    return target == "loader.1" ? 1 : target == "loader.0" ? 0 : -1;
  }
  /// The deployment an options line leads to; "nothing" when its link or its directory is missing.
  std::string leads_to(const std::string& options) const {
    const auto at = options.find("ostree=");
    if (at == std::string::npos) return "nothing";
    const std::string path = options.substr(at + 8, options.find_first_of(" \n", at) - at - 8);
    std::error_code error;
    const fs::path end = fs::canonical(root_ / path, error);
    return error ? "nothing" : end.filename().string();
  }
  std::string kernel_of(const std::string& id) const {
    return text(directory(id) + "/usr/lib/modules/6.1.0/vmlinuz");
  }
  std::string initramfs_of(const std::string& id) const {
    return text(directory(id) + "/usr/lib/modules/6.1.0/initramfs.img");
  }

  fs::path root_;
  std::map<std::string, std::string> kernels_;  ///< deployment id, boot checksum
};

}  // namespace rasupd::boot
