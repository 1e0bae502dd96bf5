#pragma once
// The disk an installation goes to, a block device or an image file, held exclusively; and windows into it as
// loop devices, because partition nodes do not appear everywhere (image files, containers). Errors: Usage (no
// such device, a partition, in use), Busy, Failed.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/handle.hpp"
#include "base/world.hpp"

namespace rasupd {

class BlockDevice {
 public:
  /// Opens for writing and claims: a block device by O_EXCL, which the kernel refuses while it or a partition
  /// of it is mounted or part of something; a file by its lock, and unless a loop device or a virtual machine
  /// uses it. Changes nothing.
  static Result<BlockDevice> open(const std::string& path);

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  int fd() const { return fd_.get(); }

  /// What wipefs(8) finds: file systems, partition tables, RAID and LVM members. Reads only.
  Result<std::vector<std::string>> signatures(Runner& runner) const;

  Result<std::string> read_at(std::uint64_t offset, std::size_t size) const;
  Result<void> write_at(std::uint64_t offset, std::string_view bytes) const;
  /// Everything on the medium, and the kernel asked to look at the partition table again.
  Result<void> settle() const;

 private:
  BlockDevice(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  std::string path_;
  Fd fd_;
  std::uint64_t size_ = 0;
};

/// `size` bytes from `offset` of a device as a block device of its own. Gone when the owner and the last
/// mount of it are, also after a kill: the kernel clears it (LO_FLAGS_AUTOCLEAR).
class LoopWindow {
 public:
  static Result<LoopWindow> attach(const BlockDevice& device, std::uint64_t offset, std::uint64_t size);
  const std::string& path() const { return path_; }
  Result<void> sync() const;

 private:
  LoopWindow(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  std::string path_;
  Fd fd_;
};

}  // namespace rasupd
