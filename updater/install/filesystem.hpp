#pragma once
// File systems made and mounted, in a mount namespace that nobody else sees. Errors: Failed, Cancelled.

#include <string>
#include <vector>

#include "base/world.hpp"
#include "install/disk_layout.hpp"

namespace rasupd {

/// Runs a program to its end. An exit code that is not 0 is an error Failed with the last line it said.
Result<Outcome> run_tool(Runner& runner, const std::vector<std::string>& argv);

/// A program and the Debian package that brings it.
struct Tool {
  std::string program, package;
};
/// Error Failed naming what is missing and its package; looks in PATH.
Result<void> require_tools(const std::vector<Tool>& tools);
/// The programs that make file system `type`.
Tool tool_of_file_system(const std::string& type);

/// A random identity as `type` writes it: 8 digits for vfat, else a UUID.
Result<std::string> new_uuid(const std::string& type);

/// Makes the partition's file system, label and identity on the block device `path`; what an older one left
/// goes first.
Result<void> make_file_system(Runner& runner, const Partition& partition, const std::string& path);

/// From here on, mounts of the calling thread (and of threads and programs it starts later) are its own: they
/// end with the process however that ends.
Result<void> enter_private_mounts();

/// One mount, undone by its owner's end.
class Mount {
 public:
  /// `source` on `target`, which is made when it is missing. `type` "bind": the directory `source`.
  /// `options`: the file system's own.
  static Result<Mount> make(const std::string& source, const std::string& target, const std::string& type,
                            const std::string& options = {});
  Mount(Mount&& other) noexcept : target_(std::move(other.target_)) { other.target_.clear(); }
  Mount& operator=(Mount&&) = delete;
  ~Mount();
  /// Unmounts now and reports what the destructor would hide.
  Result<void> end();
  const std::string& target() const { return target_; }

 private:
  explicit Mount(std::string target) : target_(std::move(target)) {}
  std::string target_;
};

/// A directory of its own with a tmpfs mounted on it; both gone with the owner (after a kill the empty
/// directory stays). Call enter_private_mounts() before.
class WorkDirectory {
 public:
  static Result<WorkDirectory> make();
  WorkDirectory(WorkDirectory&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  WorkDirectory& operator=(WorkDirectory&&) = delete;
  ~WorkDirectory();
  const std::string& path() const { return path_; }

 private:
  explicit WorkDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace rasupd
