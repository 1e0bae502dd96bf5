#pragma once
// Sysroot: libostree's OstreeSysroot as the deploy transaction needs it, under its lock. Deployments are
// named by their directory relative to the sysroot (ostree/deploy/STATEROOT/deploy/CHECKSUM.SERIAL). Nothing
// here cleans up unless clean() is called. Reading for status needs none of it: the free functions at the end
// read single files, take no lock and create nothing. Errors: Busy, Boot (libostree cannot load the entries),
// NoSpace, Failed.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace rasupd {

/// One tree to deploy or stage.
struct TreeRequest {
  std::string stateroot, commit;
  std::string origin;              ///< the whole origin file; transient state (pins) is removed from it
  std::vector<std::string> kargs;  ///< complete, without ostree=
};

class Sysroot {
 public:
  /// Makes `path`/ostree with a bare repository, boot/ and the stateroot with an empty var, when they are
  /// missing.
  static Result<void> initialize(const std::string& path, const std::string& stateroot);
  /// Takes libostree's lock and loads. With `running`, a read-only /sysroot and /boot become writable in a
  /// mount namespace of the calling thread (and of threads it starts later): call it before any worker
  /// exists.
  static Result<Sysroot> lock(const std::string& path, bool running);
  ~Sysroot();
  Sysroot(Sysroot&&) noexcept;
  Sysroot& operator=(Sysroot&&) noexcept;

  Result<void> reload();
  /// Directories in boot order, a staged one first.
  std::vector<std::string> deployments() const;

  /// Checks the tree out with /etc as the image has it. Nothing boots it before write(). Returns the
  /// directory.
  Result<std::string> deploy(const TreeRequest& request);
  /// libostree's checksum of kernel and initramfs of a deployment of the list or of deploy().
  Result<std::string> boot_checksum(const std::string& directory) const;
  /// The `options` line that write() gives the deployment's boot entry when its `ostree=` is `path`.
  Result<std::string> entry_options(const std::string& directory, const std::string& path) const;
  /// The immutable bit libostree puts on a deployment's root.
  Result<void> set_mutable(const std::string& directory, bool writable);
  /// Makes `directories` the boot entries in this order; a staged deployment is dropped unless it is the
  /// first.
  Result<void> write(const std::vector<std::string>& directories);
  /// Stages for the next shutdown; needs a booted system.
  Result<void> stage(const TreeRequest& request, bool locked);
  Result<void> set_staged_locked(bool locked);
  Result<void> set_pinned(const std::string& directory, bool pinned);
  /// Removes deployment directories, boot versions and kernels that no entry names. No prune of the
  /// repository.
  Result<void> clean();

  /// Links the directory `subpath` of `commit` to `destination` (absolute, must not exist). False: no such
  /// directory.
  Result<bool> checkout(const std::string& commit, const std::string& subpath,
                        const std::string& destination);
  /// What boot_checksum() of a deployment of `commit` would be, for trees without device trees; nullopt else.
  Result<std::optional<std::string>> kernel_checksum(const std::string& commit);

  struct Body;

 private:
  explicit Sysroot(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

/// What /run/ostree/staged-deployment says.
struct StagedDeployment {
  std::string stateroot, checksum, boot_checksum;
  int serial = 0;
  bool locked = false;
  std::vector<std::string> kargs;
};
/// nullopt when nothing is staged. `run` is /run/ostree but in tests.
Result<std::optional<StagedDeployment>> read_staged(const std::string& run = "/run/ostree");

/// Device and inode that the booted deployment's directory has, when `sysroot` is the running root of a
/// system that ostree booted (/run/ostree-booted); nullopt else.
struct RootIdentity {
  std::uint64_t device = 0, inode = 0;
};
Result<std::optional<RootIdentity>> booted_root(const std::string& sysroot);

/// Metadata of a commit that ostree-ext's importers write; empty members where it has none. `repo` is the
/// path of a bare repository. nullopt when the commit is not there.
struct CommitFacts {
  std::string manifest_digest, manifest, config, version;
  std::int64_t timestamp = 0;
};
Result<std::optional<CommitFacts>> read_commit_facts(const std::string& repo, const std::string& commit);

}  // namespace rasupd
