#pragma once
// HostState: what the machine is, read from disk (entries, deployments, origins, /proc/cmdline). No lock, no
// write; what cannot be known is empty, and what makes a clean-up unsafe is in `problems`.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/world.hpp"
#include "image/reference.hpp"

namespace rasupd {

struct Deployment {
  std::string stateroot;
  std::string checksum;  ///< the commit
  int serial = 0;
  std::string directory;  ///< relative to the sysroot: ostree/deploy/<stateroot>/deploy/<checksum>.<serial>
  bool booted = false, staged = false, pinned = false;
  bool locked = false;             ///< staged and held back (--download-only)
  std::string boot_checksum;       ///< of kernel and initramfs; two equal ones share them in /boot
  std::vector<std::string> kargs;  ///< without ostree=

  std::string origin;                 ///< container-image-reference as written; empty: not from an image
  std::optional<Reference> image;     ///< the same, parsed
  std::string manifest_digest;        ///< per-arch: commit metadata `ostree.manifest-digest`, else origin
  std::string index_digest;           ///< origin [rasupd] index-digest; empty when unknown
  std::string version, architecture;  ///< from the stored image config
  std::int64_t timestamp = 0;         ///< seconds; 0 unknown
  std::string signature_rule, signature_key, signature_carrier;  ///< origin [rasupd]
};

struct HostState {
  bool ostree = false;   ///< there is an ostree repository under the sysroot
  bool running = false;  ///< the sysroot is the running system's and it booted from one of its deployments
  std::vector<Deployment> deployments;  ///< in boot order, a staged one first
  std::optional<std::size_t> booted, staged;
  std::optional<std::size_t> first;     ///< the first boot entry: today's default (never a staged one)
  std::optional<std::size_t> rollback;  ///< what `rollback` would make the default
  std::string good;  ///< CHECKSUM.SERIAL of the deployment that was last marked good; empty when none was
  bool rollback_queued = false;         ///< booted is no longer the first entry and nothing is staged
  std::vector<std::string>
      problems;  ///< R123: /boot not mounted, entries unreadable, directories without entry, …

  /// The merge base: booted, else the first entry; null on a fresh sysroot.
  const Deployment* current() const;
};

/// Errors: Boot (entries unreadable, with the file and the way out). A sysroot without ostree is a state, not
/// an error.
Result<HostState> read_host(const World& world);

/// Directories (relative to the sysroot) of all deployments on disk, with or without a boot entry.
Result<std::vector<std::string>> list_deployment_directories(const std::string& sysroot);
/// One of them, described by its commit and origin alone; nullopt when the name is not a deployment's.
Result<std::optional<Deployment>> read_deployment(const World& world, const std::string& directory);

}  // namespace rasupd
