#include "install/filesystem.hpp"

#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "base/files.hpp"
#include "base/text.hpp"

namespace rasupd {
namespace {

constexpr std::chrono::minutes kMkfsTimeout{30};  // a large disk without discard

std::string last_line(const Outcome& outcome) {
  const std::string_view said = trim(outcome.err.empty() ? outcome.out : outcome.err);
  const auto at = said.rfind('\n');
  return printable(at == std::string_view::npos ? said : said.substr(at + 1));
}

bool in_path(const std::string& program) {
  const char* path = ::getenv("PATH");
  for (const std::string& folder : split(path ? path : "/usr/sbin:/usr/bin:/sbin:/bin", ':')) {
    if (::access(path_join(folder, program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

/// GRUB reads ext4 without these two; e2fsprogs before 1.47 knows no orphan_file.
Result<void> make_ext4(Runner& runner, const Partition& partition, const std::string& path) {
  const auto words = [&](const char* features) {
    return std::vector<std::string>{"mkfs.ext4", "-q",           "-F", "-L",     partition.name,
                                    "-U",        partition.uuid, "-O", features, path};
  };
  const Outcome made = TRY(runner.run(words("^metadata_csum_seed,^orphan_file"), {kMkfsTimeout}));
  if (made.exit_code == 0) return {};
  TRY(run_tool(runner, words("^metadata_csum_seed")));
  return {};
}

}  // namespace

Result<Outcome> run_tool(Runner& runner, const std::vector<std::string>& argv) {
  Outcome done = TRY(runner.run(argv, {kMkfsTimeout}));
  if (done.exit_code == 0) return done;
  return fail(Kind::Failed, argv.at(0) + " failed: " + last_line(done));
}

Result<void> require_tools(const std::vector<Tool>& tools) {
  for (const Tool& tool : tools) {
    if (in_path(tool.program)) continue;
    return fail(Kind::Failed, tool.program + " is needed and not in PATH", "apt-get install " + tool.package);
  }
  return {};
}

Tool tool_of_file_system(const std::string& type) {
  if (type == "vfat") return {"mkfs.vfat", "dosfstools"};
  if (type == "xfs") return {"mkfs.xfs", "xfsprogs"};
  if (type == "btrfs") return {"mkfs.btrfs", "btrfs-progs"};
  return {"mkfs.ext4", "e2fsprogs"};
}

Result<std::string> new_uuid(const std::string& type) {
  const auto random = TRY(read_file("/proc/sys/kernel/random/uuid", 64));
  if (!random) return fail(Kind::Failed, "/proc/sys/kernel/random/uuid is missing", "mount /proc");
  std::string uuid(trim(*random));
  if (type != "vfat") return uuid;
  uuid = uuid.substr(0, 8);
  std::transform(uuid.begin(), uuid.end(), uuid.begin(), [](unsigned char c) { return std::toupper(c); });
  return uuid.insert(4, "-");
}

Result<void> make_file_system(Runner& runner, const Partition& partition, const std::string& path) {
  // A superblock that an older file system keeps elsewhere (btrfs: 64 KiB) would make two of one.
  TRY(run_tool(runner, {"wipefs", "--all", "--force", path}));
  if (partition.file_system == "ext4") return make_ext4(runner, partition, path);
  std::vector<std::string> words;
  if (partition.file_system == "vfat") {
    std::string id = partition.uuid;
    id.erase(std::remove(id.begin(), id.end(), '-'), id.end());
    words = {"mkfs.vfat", "-F", "32", "-n", partition.name, "-i", id, path};
  } else if (partition.file_system == "xfs") {
    words = {"mkfs.xfs", "-q", "-f", "-L", partition.name, "-m", "uuid=" + partition.uuid, path};
  } else {
    words = {"mkfs.btrfs", "-q", "-f", "-L", partition.name, "-U", partition.uuid, path};
  }
  TRY(run_tool(runner, words).within(partition.name));
  return {};
}

Result<void> enter_private_mounts() {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    Error error{Kind::Failed, std::string("making a mount namespace: ") + std::strerror(errno)};
    error.hint = "run it as root, with the right to mount";
    return fail(std::move(error));
  }
  return {};
}

Result<Mount> Mount::make(const std::string& source, const std::string& target, const std::string& type,
                          const std::string& options) {
  TRY(make_directories(target));
  const bool bind = type == "bind";
  if (::mount(source.c_str(), target.c_str(), bind ? nullptr : type.c_str(), bind ? MS_BIND : 0,
              options.c_str()) != 0) {
    return fail_errno(errno, "mounting " + source + " (" + type + ")");
  }
  return Mount(target);
}

Mount::~Mount() {
  // Lazily as the last resort: the namespace goes with the process, and the loop device with it.
  if (!target_.empty() && ::umount(target_.c_str()) != 0) ::umount2(target_.c_str(), MNT_DETACH);
}

Result<void> Mount::end() {
  if (target_.empty()) return {};
  if (::umount(target_.c_str()) != 0) return fail_errno(errno, "unmounting " + target_);
  target_.clear();
  return {};
}

Result<WorkDirectory> WorkDirectory::make() {
  const char* folder = ::getenv("TMPDIR");
  std::string path = path_join(folder && *folder == '/' ? folder : "/tmp", "rasupd-disk-XXXXXX");
  if (::mkdtemp(path.data()) == nullptr) return fail_errno(errno, "making a temporary directory");
  if (::mount("tmpfs", path.c_str(), "tmpfs", 0, "mode=0700") != 0) {
    const int why = errno;
    ::rmdir(path.c_str());
    return fail_errno(why, "mounting a tmpfs");
  }
  return WorkDirectory(path);
}

WorkDirectory::~WorkDirectory() {
  if (path_.empty()) return;
  ::umount2(path_.c_str(), MNT_DETACH);
  ::rmdir(path_.c_str());
}

}  // namespace rasupd
