#include "install/install.hpp"

#include <unistd.h>

#include "base/failpoint.hpp"
#include "base/files.hpp"
#include "base/progress.hpp"
#include "image/platform.hpp"
#include "install/root_directory.hpp"
#include "source/source.hpp"
#include "state/state_dir.hpp"
#include "upgrade/attempt.hpp"

namespace rasupd {
namespace {

Result<void> deploy_first(const World& world, const Settings& settings, const InstallRequest& request,
                          Source& source, const Candidate& candidate, UpgradeReport& report) {
  TRY(init_sysroot(world, request.stateroot));
  TRY(failpoint("lock"));
  LockedHost host = TRY(LockedHost::lock(world));
  Repo repo = TRY(Repo::open(path_join(world.sysroot, "ostree/repo")));
  const ImportPlan plan = TRY(plan_import(repo, candidate.image.manifest, candidate.config.config));
  report.layers_needed = plan.needed;
  report.layers_present = plan.present;
  report.bytes_needed = plan.bytes_needed;
  const Imported imported = TRY(import_candidate(world, settings, source, repo, host, candidate, plan));
  report.bytes_fetched = source.bytes_fetched();
  Steps steps(world.progress, "staging", "Deploying", {"unpacking /var", "deploying"});
  steps.begin(0);
  TRY(unpack_var(repo, imported.commit,
                 path_join(world.sysroot, "ostree/deploy/" + request.stateroot + "/var")));
  TRY(world.check_stop());
  TRY(failpoint("stage"));
  steps.begin(1);
  NewDeployment next = deployment_of(candidate, request.image, imported.commit, request.stateroot);
  next.add_kargs = request.kargs;
  DeployResult deployed = TRY(deploy_image(host, next));
  for (std::string& warning : deployed.warnings) report.warnings.push_back(std::move(warning));
  steps.begin(2);
  return {};
}

}  // namespace

Result<UpgradeReport> install_to_filesystem(const World& world, const Settings& settings,
                                            const InstallRequest& request) {
  const bool empty = TRY(root_is_empty(world.sysroot));
  if (!empty && !request.replace) {
    return fail(Kind::Usage, world.sysroot + " is not empty", "--replace removes what is there");
  }
  UpgradeReport report;
  report.reference = request.image;
  Source source = TRY(Source::open(world, request.image, settings));
  const std::string architecture =
      request.architecture.empty() ? TRY(host_architecture()) : request.architecture;
  const Candidate candidate =
      TRY(find_candidate(world, settings, source, request.image, std::nullopt, architecture));
  report.digest = candidate.image.document.digest.str();
  if (candidate.image.index) report.index_digest = candidate.image.index->digest.str();
  report.version = candidate.version;
  report.architecture = candidate.config.config.architecture;
  report.trust = candidate.trust;

  if (!empty) TRY(empty_root(world.sysroot));
  const bool made = !exists(world.sysroot);
  if (made) TRY(make_directories(world.sysroot));
  if (auto done = deploy_first(world, settings, request, source, candidate, report); !done) {
    if (auto emptied = empty_root(world.sysroot); !emptied)
      world.progress.note("warning: " + emptied.error().message);
    if (made) ::rmdir(world.sysroot.c_str());
    done.error().changed = !empty;
    return fail(std::move(done.error()));
  }
  report.changed = true;
  const std::string state = state_directory(world.sysroot, false, request.stateroot);
  // A first installation is never on trial: what was chosen here is the floor.
  if (!report.version.empty()) {
    auto written = write_floor(state, floor_key(request.image), report.version);
    if (!written) report.warnings.push_back(written.error().message);
  }
  record_attempt(world, state, "install", report.digest, true, nullptr);
  return report;
}

}  // namespace rasupd
