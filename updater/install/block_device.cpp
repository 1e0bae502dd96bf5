#include "install/block_device.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.hpp"
#include "base/json.hpp"
#include "install/disk_layout.hpp"

namespace rasupd {
namespace {

tl::unexpected<Error> in_use(const std::string& path, const std::string& how) {
  return fail(Kind::Usage, path + " is in use: " + how, "release it first, or name another device");
}

/// A loop device whose backing file is `file`; nullopt when there is none.
std::optional<std::string> loop_of(const struct stat& file) {
  const auto names = list_directory("/sys/block");
  if (!names) return std::nullopt;
  for (const std::string& name : *names) {
    if (!name.starts_with("loop") || !exists("/sys/block/" + name + "/loop")) continue;
    const std::string path = "/dev/" + name;
    const Fd loop(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct loop_info64 info {};
    if (!loop || ::ioctl(loop.get(), LOOP_GET_STATUS64, &info) != 0) continue;
    if (info.lo_device == file.st_dev && info.lo_inode == file.st_ino) return path;
  }
  return std::nullopt;
}

/// Virtual machine monitors lock their images by fcntl(2).
bool locked_by_process(int fd) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

Result<std::uint64_t> claim_file(const std::string& path, int fd, const struct stat& info) {
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return fail(Kind::Busy, "another installation to " + path + " is running", "wait for it, or end it");
  }
  if (const auto loop = loop_of(info)) return in_use(path, *loop + " is set up on it");
  if (locked_by_process(fd)) return in_use(path, "a program, maybe a virtual machine, has locked it");
  return static_cast<std::uint64_t>(info.st_size);
}

Result<std::uint64_t> ask_device(const std::string& path, int fd, const struct stat& info) {
  if (exists(fmt::format("/sys/dev/block/{}:{}/partition", major(info.st_rdev), minor(info.st_rdev)))) {
    return fail(Kind::Usage, path + " is a partition", "name the whole disk, or use install to-filesystem");
  }
  int sector = 0;
  std::uint64_t size = 0;
  if (::ioctl(fd, BLKSSZGET, &sector) != 0 || ::ioctl(fd, BLKGETSIZE64, &size) != 0)
    return fail_errno(errno, path);
  if (static_cast<std::uint64_t>(sector) != kSector) {
    return fail(Kind::Usage,
                fmt::format("{} has logical sectors of {} bytes; only 512 are supported", path, sector));
  }
  return size;
}

/// Claims a free loop device; EBUSY is another program that was faster.
Result<Fd> configure_loop(struct loop_config& config, std::string& path) {
  const Fd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control) return fail_errno(errno, "opening /dev/loop-control");
  for (int attempt = 0; attempt < 64; ++attempt) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return fail_errno(errno, "looking for a free loop device");
    path = fmt::format("/dev/loop{}", number);
    Fd loop(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!loop) return fail_errno(errno, "opening " + path);
    if (::ioctl(loop.get(), LOOP_CONFIGURE, &config) == 0) return loop;
    if (errno != EBUSY) return fail_errno(errno, "setting up " + path);
  }
  return fail(Kind::Failed, "no loop device stays free long enough");
}

}  // namespace

Result<BlockDevice> BlockDevice::open(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return fail(Kind::Usage, path + " does not exist", "an image file is made by: truncate -s 8G FILE");
    }
    return fail_errno(errno, path);
  }
  const bool device = S_ISBLK(info.st_mode);
  if (!device && !S_ISREG(info.st_mode))
    return fail(Kind::Usage, path + " is neither a block device nor a file");
  Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | (device ? O_EXCL : 0)));
  if (!fd && errno == EBUSY) return in_use(path, "mounted, or part of a swap space, RAID or volume group");
  if (!fd) return fail_errno(errno, "opening " + path);
  const int raw = fd.get();
  // Absolute: no tool takes it for an option.
  BlockDevice opened(std::filesystem::absolute(path).string(), std::move(fd));
  opened.size_ = device ? TRY(ask_device(path, raw, info)) : TRY(claim_file(path, raw, info));
  return opened;
}

Result<std::vector<std::string>> BlockDevice::signatures(Runner& runner) const {
  const Outcome looked = TRY(runner.run({"wipefs", "--no-act", "--json", path_}, {}));
  if (looked.exit_code != 0) return fail(Kind::Failed, "wipefs cannot read " + path_, looked.err);
  std::vector<std::string> found;
  if (looked.out.find_first_not_of(" \n") == std::string::npos) return found;  // util-linux before 2.38
  const Json document = TRY(parse_json(looked.out, "the answer of wipefs", Kind::Failed, 1 << 20));
  const auto list = document.find("signatures");
  if (list == document.end() || !list->is_array()) {
    return fail(Kind::Failed, "the answer of wipefs lists no signatures");
  }
  for (const Json& one : *list) found.push_back(TRY(json_string(one, "type", "wipefs", Kind::Failed)));
  return found;
}

Result<std::string> BlockDevice::read_at(std::uint64_t offset, std::size_t size) const {
  std::string bytes(size, '\0');
  const ssize_t n = ::pread(fd_.get(), bytes.data(), size, static_cast<off_t>(offset));
  if (n < 0) return fail_errno(errno, "reading " + path_);
  if (static_cast<std::size_t>(n) != size) return fail(Kind::Failed, path_ + " ends early");
  return bytes;
}

Result<void> BlockDevice::write_at(std::uint64_t offset, std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(errno, "writing " + path_);
    offset += static_cast<std::uint64_t>(n);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> BlockDevice::settle() const {
  if (::fsync(fd_.get()) != 0) return fail_errno(errno, "writing " + path_);
  ::ioctl(fd_.get(), BLKFLSBUF,
          0);  // else partition nodes may show what was there before; a file has neither
  ::ioctl(fd_.get(), BLKRRPART, 0);
  return {};
}

Result<LoopWindow> LoopWindow::attach(const BlockDevice& device, std::uint64_t offset, std::uint64_t size) {
  struct loop_config config {};
  config.fd = static_cast<__u32>(device.fd());
  config.info.lo_offset = offset;
  config.info.lo_sizelimit = size;
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
  std::memcpy(config.info.lo_file_name, device.path().data(),
              std::min(device.path().size(), sizeof config.info.lo_file_name - 1));
  std::string path;
  Fd loop = TRY(configure_loop(config, path));
  return LoopWindow(std::move(path), std::move(loop));
}

Result<void> LoopWindow::sync() const {
  if (::fsync(fd_.get()) != 0) return fail_errno(errno, "writing through " + path_);
  return {};
}

}  // namespace rasupd
