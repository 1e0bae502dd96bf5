#pragma once
// The deploy transaction: what changes what boots next. Every function here needs the lock; each leaves the
// old default in place when it fails, and says so. Errors: Busy, Boot, NoSpace, Unsuitable, Failed.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deploy/etc_merge.hpp"
#include "deploy/host.hpp"

namespace rasupd {

/// The sysroot's lock (libostree's own, so `ostree admin` is kept out too) with the state read under it.
class LockedHost {
 public:
  /// Busy at once when another holds it. Cleans nothing.
  static Result<LockedHost> lock(const World& world);
  /// Waits up to two minutes for another's: at boot and at shutdown nobody can be asked to try again. Counted in
  /// pauses, because the clock may jump then. Errors: Busy, Cancelled, as lock().
  static Result<LockedHost> lock_patiently(const World& world);
  ~LockedHost();
  LockedHost(LockedHost&&) noexcept;
  LockedHost& operator=(LockedHost&&) noexcept;
  const HostState& state() const;
  /// Reads the state anew, e.g. after a write.
  Result<void> reload();

  struct Body;
  Body& body() const { return *body_; }

 private:
  explicit LockedHost(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

/// Makes SYSROOT/ostree with a bare repository, boot/, and the stateroot, when they are missing (install).
Result<void> init_sysroot(const World& world, const std::string& stateroot);

/// The /etc plan of moving from the current deployment to `commit`, whose usr/etc is taken from the
/// repository. On a fresh sysroot an empty plan.
Result<EtcPlan> plan_etc_for(const LockedHost& host, const std::string& commit);

struct NewDeployment {
  std::string commit;
  std::string stateroot = "default";
  Reference tracked;  ///< goes to the origin
  std::string manifest_digest, index_digest;
  std::string signature_rule, signature_key, signature_carrier;
  bool locked = false;                 ///< staged: hold back until unlocked
  std::vector<std::string> add_kargs;     ///< install --karg
  std::vector<std::string> ensure_kargs;  ///< added unless an argument of the same key is there
};
struct DeployResult {
  bool staged = false;    ///< else it is the first boot entry now
  std::string directory;  ///< relative to the sysroot; empty when staged
  std::vector<EtcNote> notes;
  std::vector<std::string> warnings;
};
/// Booted: stages (kargs.d difference applied, /etc merged at finalize). Nothing booted: deploys at once with
/// rasupd's own /etc merge, first entry, the former first kept as rollback. The directory, its /etc and the
/// kernels are synced and read back before the entries switch (R124).
Result<DeployResult> deploy_image(LockedHost& host, const NewDeployment& what);

/// How the new deployment starts.
struct TrialRequest {
  unsigned tries = 0;    ///< starts on trial; 0: no trial
  std::string previous;  ///< CHECKSUM.SERIAL of the second entry, where a failed trial ends; empty: the current one
  /// Called with CHECKSUM.SERIAL of the new deployment before anything that boots changes; an error stops the switch.
  std::function<Result<void>(const std::string& deployment)> record;
};
/// Carries out what is staged, as the shutdown unit does: own /etc merge, kernels, trial armed, entries. nullopt:
/// nothing staged, or held back.
Result<std::optional<DeployResult>> finalize_staged(LockedHost& host, const TrialRequest& trial);
/// Holds a staged deployment back or releases it.
Result<void> set_staged_locked(LockedHost& host, bool locked);
/// Drops the staged deployment. False when there is none.
Result<bool> unstage(LockedHost& host);

struct RollbackResult {
  Deployment next;  ///< what boots next
  std::optional<Deployment> dropped_staged;
  std::optional<Deployment> left;  ///< the deployment that was the default
};
/// Makes HostState::rollback the first entry. Error Boot when there is no target.
Result<RollbackResult> rollback(LockedHost& host);

/// Removes deployments that are neither booted, first, rollback, last good, staged, pinned nor of another stateroot,
/// their kernels in /boot and leftovers. Call it before the repository is pruned: it also names the kept
/// commits by refs. Error Boot, and nothing removed, when HostState::problems is not empty. `dry_run` only
/// lists.
Result<std::vector<Deployment>> clean_deployments(LockedHost& host, bool dry_run);
/// Pins or releases deployment `index` of the boot order.
Result<void> set_pinned(LockedHost& host, std::size_t index, bool pinned);

/// Error NoSpace when kernel and initramfs of `bytes` do not fit in the file system of /boot (R112); Boot
/// when it is not writable. With `commit` (already in the repository), a kernel that /boot holds already
/// needs nothing.
Result<void> check_boot_space(const LockedHost& host, std::uint64_t bytes, const std::string& commit = {});

}  // namespace rasupd
