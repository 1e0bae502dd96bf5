#include "upgrade/upgrade.hpp"

#include <fmt/format.h>

#include "base/failpoint.hpp"
#include "base/files.hpp"
#include "base/progress.hpp"
#include "base/text.hpp"
#include "bootloader/detect.hpp"
#include "deploy/trial.hpp"
#include "image/platform.hpp"
#include "policy/hold.hpp"
#include "policy/version.hpp"
#include "state/state_dir.hpp"
#include "state/trial.hpp"
#include "upgrade/attempt.hpp"
#include "upgrade/finalize.hpp"

namespace rasupd {
namespace {

/// One run of the transaction: what it was asked, what it has found so far.
struct Run {
  const World& world;
  const Settings& settings;
  const UpgradeRequest& request;
  HostState host;
  Reference tracked;  ///< goes to the origin
  std::string state_dir;
  UpgradeReport report;
};

Reference with_tag(Reference reference, const std::string& tag) {
  reference.tag = tag;
  reference.digest.reset();
  return reference;
}

/// Step 3: what is tracked, and may this verb run here at all?
Result<void> know_the_host(Run& run) {
  run.host = TRY(read_host(run.world));
  const Deployment* current = run.host.current();
  if (!current && !run.host.problems.empty()) {
    return fail(Kind::Boot, join(run.host.problems, "; "), "mend this first: nothing was changed");
  }
  if (!current) {
    return fail(Kind::Boot, fmt::format("{}: no deployment to upgrade", run.world.sysroot),
                "a first installation is `rasupd install to-filesystem IMAGE ROOT`");
  }
  // What boots next says what is tracked: a switch before the reboot must not be lost.
  const Deployment& source = run.host.staged           ? run.host.deployments[*run.host.staged]
                             : run.host.rollback_queued ? run.host.deployments[*run.host.first]
                                                        : *current;
  run.state_dir = state_directory_of(run.world, run.host);
  if (run.request.download_only) TRY(require_running(run.host, "--download-only"));
  if (run.request.apply) TRY(require_running(run.host, "--apply"));
  if (run.request.target) {
    run.tracked = *run.request.target;
  } else if (source.image) {
    run.tracked = *source.image;
  } else {
    return fail(Kind::Boot,
                "the current deployment does not come from an image, so there is nothing to track",
                "name one: `rasupd switch IMAGE`");
  }
  if (run.request.tag) run.tracked = with_tag(run.tracked, *run.request.tag);
  run.report.reference = run.tracked;
  return {};
}

Result<std::string> architecture_for(const HostState& host) {
  const Deployment* current = host.current();
  // A disk of another machine is worked on for that machine.
  if (!host.running && current && !current->architecture.empty()) return current->architecture;
  return host_architecture();
}

void describe(UpgradeReport& report, const Candidate& candidate) {
  report.digest = candidate.image.document.digest.str();
  if (candidate.image.index) report.index_digest = candidate.image.index->digest.str();
  report.version = candidate.version;
  report.architecture = candidate.config.config.architecture;
  report.trust = candidate.trust;
}

/// Is the offered image what the machine has already, under the reference that will be tracked?
bool is_current(const Run& run, const std::string& digest) {
  const auto same = [&](const Deployment& d) {
    return d.manifest_digest == digest && d.image == run.tracked;
  };
  if (run.host.staged) return same(run.host.deployments[*run.host.staged]);
  // The booted one is not what boots next after a rollback, or when power was cut right after a finalize.
  if (run.host.rollback_queued) return same(run.host.deployments[*run.host.first]);
  return same(*run.host.current());
}

/// The lowest version to take. Where nobody boots nothing is ever marked good: what is the default there is
/// its own verdict (ADR 0004).
Result<std::optional<std::string>> floor_of(const Run& run) {
  auto floor = TRY(read_floor(run.state_dir, floor_key(run.tracked)));
  const Deployment& current = *run.host.current();
  if (run.host.running || current.version.empty() || !current.image) return floor;
  if (floor_key(*current.image) != floor_key(run.tracked)) return floor;
  if (!floor || policy::compare_versions(current.version, *floor) > 0) floor = current.version;
  return floor;
}

/// The digest that waits for its verdict: what is booted, or what did not come up (health has not yet said so). One that
/// only boots next time holds nobody up.
Result<std::string> digest_on_trial(const Run& run) {
  if (!run.host.running) return std::string();
  const auto record = TRY(read_trial(run.state_dir));
  if (!record) return std::string();
  if (record->deployment == deployment_id(*run.host.current())) return record->digest;
  const auto bootloader = TRY(boot::detect(run.world, run.host.running));
  const auto counter = TRY(bootloader->trial());
  const bool exhausted = counter && counter->deployment == record->deployment && counter->left == 0;
  return exhausted ? record->digest : std::string();
}

/// Step 6, the machine's own memory: held digests and the version floor.
Result<void> may_it_be_taken(Run& run) {
  policy::HoldFacts facts;
  facts.digest = run.report.digest;
  facts.version = run.report.version;
  for (const Held& held : TRY(read_held(run.state_dir))) {
    facts.held_digests.push_back(held.digest);
    facts.held_reasons.push_back(held.reason);
  }
  facts.floor = TRY(floor_of(run));
  facts.on_trial = TRY(digest_on_trial(run));
  facts.retry_held = run.request.retry_held;
  facts.allow_downgrade = run.request.allow_downgrade;
  for (std::string& warning : TRY(policy::may_take(facts))) run.report.warnings.push_back(std::move(warning));
  return {};
}

void describe_plan(UpgradeReport& report, const ImportPlan& plan) {
  report.layers_present = plan.present;
  report.layers_needed = plan.needed;
  report.bytes_needed = plan.bytes_needed;
}

/// What the machine remembers of an image it has taken. The image stays taken when this cannot be written.
Result<void> remember_taken(const Run& run) {
  TRY(lift(run.state_dir, run.report.digest));
  return {};
}

/// On a running machine the rest happens at shutdown: who will do it, and will the machine come back by itself?
Result<void> foresee_the_shutdown(Run& run) {
  if (!run.host.running) return {};
  TRY(ensure_finalizer(run.world));
  const policy::TrialPlan trial = TRY(trial_plan(run.host, run.state_dir, run.settings.tries));
  if (!trial.warning.empty()) run.report.warnings.push_back(trial.warning);
  return {};
}

/// Steps 8 to 12: the lock is held from here to the end.
Result<void> carry_out(Run& run, Source& source, const Candidate& candidate) {
  TRY(failpoint("lock"));
  TRY(run.world.check_stop());
  LockedHost host = TRY(LockedHost::lock(run.world));
  run.host = host.state();
  if (!host.state().problems.empty()) {
    return fail(Kind::Boot, join(host.state().problems, "; "), "mend this first: nothing was changed");
  }
  Repo repo = TRY(Repo::open(path_join(run.world.sysroot, "ostree/repo")));
  const ImportPlan plan = TRY(plan_import(repo, candidate.image.manifest, candidate.config.config));
  const Imported imported =
      TRY(import_candidate(run.world, run.settings, source, repo, host, candidate, plan));
  run.report.bytes_fetched = source.bytes_fetched();

  Steps steps(run.world.progress, "staging", "Deploying", {"merging /etc", "deploying", "cleaning up"});
  steps.begin(0);
  TRY(failpoint("etc"));
  const EtcPlan etc = TRY(plan_etc_for(host, imported.commit));
  if (!etc.conflicts.empty()) {
    const EtcConflict& first = etc.conflicts.front();
    return fail(
        Kind::Unsuitable,
        fmt::format("/etc/{}: {} (here a {}, in the image a {}){}", printable(first.path), first.why,
                    file_kind_name(first.local), file_kind_name(first.vendor),
                    etc.conflicts.size() > 1 ? fmt::format(" and {} more", etc.conflicts.size() - 1) : ""),
        "`rasupd etc conflicts` lists them all; move or remove the local files, then upgrade again");
  }
  TRY(run.world.check_stop());
  TRY(foresee_the_shutdown(run));
  TRY(failpoint("stage"));
  steps.begin(1);  // from here on a stop is not heeded: this is the commit point
  NewDeployment next = deployment_of(candidate, run.tracked, imported.commit, run.host.current()->stateroot);
  next.locked = run.request.download_only;
  DeployResult deployed = TRY(deploy_image(host, next));
  run.report.changed = true;
  run.report.staged = deployed.staged;
  run.report.locked = deployed.staged && next.locked;
  run.report.etc_notes = std::move(deployed.notes);
  for (std::string& warning : deployed.warnings) run.report.warnings.push_back(std::move(warning));
  if (auto done = remember_taken(run); !done) run.report.warnings.push_back(done.error().message);
  steps.begin(2);
  if (auto done = host.reload(); !done) run.report.warnings.push_back(done.error().message);
  run.host = host.state();
  clean_up(host, repo, run.report.warnings);
  steps.begin(3);
  return {};
}

/// A staged image stays; only whether a reboot takes it may still have to change (R110).
Result<void> converge_lock(Run& run, bool locked) {
  if (!run.host.staged || run.host.deployments[*run.host.staged].locked == locked) return {};
  LockedHost host = TRY(LockedHost::lock(run.world));
  const HostState& now = host.state();
  if (!now.staged ||
      now.deployments[*now.staged].checksum != run.host.deployments[*run.host.staged].checksum) {
    return fail(Kind::Busy, "what is staged changed meanwhile", "run it again");
  }
  TRY(set_staged_locked(host, locked));
  run.report.locked = locked;
  run.report.changed = true;
  TRY(host.reload());
  run.host = host.state();
  return {};
}

Result<void> unlock_downloaded(Run& run) {
  if (!run.host.staged) {
    return fail(Kind::Failed, "nothing is downloaded", "`rasupd upgrade --download-only` does that");
  }
  const Deployment staged = run.host.deployments[*run.host.staged];
  run.report.digest = staged.manifest_digest;
  run.report.version = staged.version;
  run.report.staged = true;
  if (run.request.digest && run.request.digest->str() != staged.manifest_digest &&
      run.request.digest->str() != staged.index_digest) {
    return fail(Kind::Untrusted,
                fmt::format("staged is {}, not {}", staged.manifest_digest, run.request.digest->str()));
  }
  if (staged.image != run.tracked) {
    return fail(Kind::Untrusted, fmt::format("what is staged is not an image of {}", run.tracked.str()));
  }
  return converge_lock(run, false);
}

/// --digest names what the machine has already (staged, or booted with nothing staged): nothing to ask
/// anybody.
bool has_digest(Run& run) {
  if (!run.request.digest || run.request.target || run.host.rollback_queued) return false;
  const Deployment& d = run.host.staged ? run.host.deployments[*run.host.staged] : *run.host.current();
  const std::string digest = run.request.digest->str();
  if (d.image != run.tracked || (d.manifest_digest != digest && d.index_digest != digest)) return false;
  run.report.digest = d.manifest_digest;
  run.report.index_digest = d.index_digest;
  run.report.version = d.version;
  run.report.architecture = d.architecture;
  run.report.staged = run.host.staged.has_value();
  return true;
}

/// The steps in their order.
Result<void> transact(Run& run) {
  if (run.request.from_downloaded) return unlock_downloaded(run);
  if (has_digest(run))
    return run.request.check ? Result<void>{} : converge_lock(run, run.request.download_only);
  Source source = TRY(Source::open(run.world, run.tracked, run.settings));
  const std::string architecture = TRY(architecture_for(run.host));
  const Candidate candidate =
      TRY(find_candidate(run.world, run.settings, source, run.tracked, run.request.digest, architecture));
  describe(run.report, candidate);
  run.report.bytes_fetched = source.bytes_fetched();
  const bool current = is_current(run, run.report.digest);
  run.report.update_available = !current;
  run.report.staged = run.host.staged.has_value();
  if (current) return run.request.check ? Result<void>{} : converge_lock(run, run.request.download_only);
  TRY(failpoint("plan"));
  auto taken = may_it_be_taken(run);
  if (!taken && run.request.check && taken.error().kind == Kind::Held) {
    run.report.held = taken.error().reason;
    run.report.update_available = false;
    return {};
  }
  TRY(std::move(taken));
  const Repo repo = TRY(Repo::open(path_join(run.world.sysroot, "ostree/repo")));
  describe_plan(run.report, TRY(plan_import(repo, candidate.image.manifest, candidate.config.config)));
  if (run.request.check) return {};
  return carry_out(run, source, candidate);
}

}  // namespace

Result<UpgradeReport> upgrade(const World& world, const Settings& settings, const UpgradeRequest& request) {
  Run run{world, settings, request, {}, {}, {}, {}};
  TRY(know_the_host(run));
  auto done = transact(run);
  if (!request.check) {
    record_attempt(world, run.state_dir, request.verb, run.report.digest, run.report.changed,
                   done ? nullptr : &done.error());
    // Another run may have staged meanwhile: what is true is on the disk.
    if (auto now = read_host(world)) refresh_reboot_required(world, *now);
  }
  if (!done) {
    done.error().changed |= run.report.changed;
    return fail(std::move(done.error()));
  }
  if (request.apply && run.host.staged) {
    if (auto asked = request_reboot(world); !asked) {
      asked.error().changed = run.report.changed;
      return fail(std::move(asked.error()));
    }
    run.report.rebooting = true;
  }
  return std::move(run.report);
}

}  // namespace rasupd
