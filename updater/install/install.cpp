#include "install/install.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>

#include "base/failpoint.hpp"
#include "base/files.hpp"
#include "base/progress.hpp"
#include "base/text.hpp"
#include "image/platform.hpp"
#include "install/root_boot.hpp"
#include "install/root_directory.hpp"
#include "source/source.hpp"
#include "state/state_dir.hpp"
#include "upgrade/attempt.hpp"

namespace rasupd {
namespace {

/// Where an image is imported before anything that ROOT holds is touched: on ROOT's own file system, so that
/// moving the repository into place is one rename.
constexpr const char* kStaging = ".rasupd-install";

/// Makes a sysroot in world.sysroot and imports the image; returns its commit.
Result<std::string> import_into(const World& world, const Settings& settings, const InstallRequest& request,
                                VerifiedImage& image) {
  TRY(init_sysroot(world, request.stateroot));
  TRY(failpoint("lock"));
  LockedHost host = TRY(LockedHost::lock(world));
  Repo repo = TRY(Repo::open(path_join(world.sysroot, "ostree/repo")));
  const Candidate& candidate = image.candidate;
  const ImportPlan plan = TRY(plan_import(repo, candidate.image.manifest, candidate.config.config));
  image.report.layers_needed = plan.needed;
  image.report.layers_present = plan.present;
  image.report.bytes_needed = plan.bytes_needed;
  const Imported imported = TRY(import_candidate(world, settings, image.source, repo, host, candidate, plan));
  image.report.bytes_fetched = image.source.bytes_fetched();
  TRY(world.check_stop());
  TRY(failpoint("stage"));
  return imported.commit;
}

/// The import beside what is there. Leaves ROOT/.rasupd-install/ostree with the image's commit, which it
/// returns.
Result<std::string> import_beside(const World& world, const Settings& settings, const InstallRequest& request,
                                  VerifiedImage& image) {
  World beside = world;
  beside.sysroot = path_join(world.sysroot, kStaging);
  return import_into(beside, settings, request, image);
}

/// The repository from beside into its place; what else the staging directory holds goes.
Result<void> move_into_place(const std::string& root) {
  const std::string from = path_join(root, std::string(kStaging) + "/ostree"), to = path_join(root, "ostree");
  if (::rename(from.c_str(), to.c_str()) != 0) return fail_errno(errno, "moving the repository to " + to);
  return remove_tree(root, kStaging);
}

/// The image's /var and the first deployment, whose directory is returned.
Result<std::string> deploy_first(const World& world, const InstallRequest& request, VerifiedImage& image,
                                 const std::string& commit) {
  LockedHost host = TRY(LockedHost::lock(world));
  const Repo repo = TRY(Repo::open(path_join(world.sysroot, "ostree/repo")));
  Steps steps(world.progress, "staging", "Deploying", {"unpacking /var", "deploying"});
  steps.begin(0);
  TRY(unpack_var(repo, commit, path_join(world.sysroot, "ostree/deploy/" + request.stateroot + "/var")));
  steps.begin(1);
  NewDeployment next = deployment_of(image.candidate, request.image, commit, request.stateroot);
  next.add_kargs = request.kargs;
  DeployResult deployed = TRY(deploy_image(host, next));
  for (std::string& warning : deployed.warnings) image.report.warnings.push_back(std::move(warning));
  steps.begin(2);
  return deployed.directory;
}

std::string real_path(const std::string& path) {
  std::error_code ignored;
  const auto real = std::filesystem::weakly_canonical(path, ignored);
  return ignored ? path : real.string();
}

/// The running system, or the place the image itself lies in, is never emptied.
Result<void> refuse_dangerous_root(const std::string& root, const InstallRequest& request) {
  const std::string real = real_path(root);
  struct stat given {
  }, running{};
  const bool same = ::stat(root.c_str(), &given) == 0 && ::stat("/", &running) == 0 &&
                    given.st_dev == running.st_dev && given.st_ino == running.st_ino;
  if (same || real == "/") return fail(Kind::Usage, root + " is the running system", "name another ROOT");
  if (request.image.transport == Transport::registry || !request.replace) return {};
  if ((real_path(request.image.path) + "/").starts_with(real + "/")) {
    return fail(Kind::Usage, "the image lies in " + root + ", which --replace would empty",
                "move it elsewhere");
  }
  return {};
}

/// Empties a ROOT that holds something; a sysroot there must not be in use.
Result<void> replace_root(const World& world) {
  std::optional<LockedHost> in_use;
  if (exists(path_join(world.sysroot, "ostree/repo"))) {
    auto locked = LockedHost::lock(world);
    if (!locked && locked.error().kind == Kind::Busy) return fail(std::move(locked.error()));
    if (locked) in_use = std::move(*locked);  // a damaged one cannot be loaded, and is what --replace is for
  }
  auto emptied = empty_root(world.sysroot, kStaging);
  if (emptied) emptied = clear_boot(world.sysroot);
  if (!emptied) emptied.error().changed = true;
  return emptied;
}

/// Steps from the import to the first boot entry. `replaced` turns true once old content is gone.
Result<void> install_there(const World& world, const Settings& settings, const InstallRequest& request,
                           VerifiedImage& image, bool empty, bool& replaced) {
  TRY(remove_tree(world.sysroot, kStaging));  // what an interrupted installation left
  const std::string commit = TRY(import_beside(world, settings, request, image));
  if (!empty) {
    replaced = true;
    TRY(replace_root(world));
  }
  TRY(move_into_place(world.sysroot));
  TRY(init_sysroot(world, request.stateroot));
  const std::string left_to_do =
      TRY(prepare_root_loader(world.sysroot, request.bootloader, image.report.architecture, commit));
  if (!left_to_do.empty()) image.report.warnings.push_back(left_to_do);
  TRY(deploy_first(world, request, image, commit));
  return {};
}

/// Only what this run made is taken away again.
void undo(const World& world, bool everything, bool made) {
  auto done = everything ? empty_root(world.sysroot) : remove_tree(world.sysroot, kStaging);
  if (!done) world.progress.note("warning: " + done.error().message);
  if (made) ::rmdir(world.sysroot.c_str());
}

/// The end of an installation that did what was asked.
void record(const World& world, const InstallRequest& request, UpgradeReport& report) {
  report.changed = true;
  const std::string state = state_directory(world.sysroot, false, request.stateroot);
  record_attempt(world, state, "install", report.digest, true, nullptr);
}

}  // namespace

Result<void> check_install_request(const InstallRequest& request) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  };
  const std::string& name = request.stateroot;
  if (name.empty() || name.front() == '.' || name.size() > 64 ||
      !std::all_of(name.begin(), name.end(), plain)) {
    return fail(Kind::Usage, "--stateroot \"" + printable(name) +
                                 "\": a name of letters, digits, '-', '_' and '.' is needed");
  }
  for (const std::string& argument : request.kargs) {
    const bool odd = std::any_of(argument.begin(), argument.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 0x20; });
    if (argument.empty() || odd)
      return fail(Kind::Usage, "--karg \"" + printable(argument) + "\" is no kernel argument");
  }
  return {};
}

Result<VerifiedImage> verify_for_install(const World& world, const Settings& settings,
                                         const InstallRequest& request) {
  Source source = TRY(Source::open(world, request.image, settings));
  const std::string architecture =
      request.architecture.empty() ? TRY(host_architecture()) : request.architecture;
  Candidate candidate =
      TRY(find_candidate(world, settings, source, request.image, std::nullopt, architecture));
  UpgradeReport report;
  report.reference = request.image;
  report.digest = candidate.image.document.digest.str();
  if (candidate.image.index) report.index_digest = candidate.image.index->digest.str();
  report.version = candidate.version;
  report.architecture = candidate.config.config.architecture;
  report.trust = candidate.trust;
  return VerifiedImage{std::move(source), std::move(candidate), std::move(report)};
}

Result<std::string> install_on_fresh_root(const World& world, const Settings& settings,
                                          const InstallRequest& request, VerifiedImage& image,
                                          const BeforeDeploy& before_deploy) {
  const std::string commit = TRY(import_into(world, settings, request, image));
  TRY(before_deploy(commit));
  std::string directory = TRY(deploy_first(world, request, image, commit));
  record(world, request, image.report);
  return directory;
}

Result<UpgradeReport> install_to_filesystem(const World& world, const Settings& settings,
                                            const InstallRequest& request) {
  TRY(check_install_request(request));
  TRY(refuse_dangerous_root(world.sysroot, request));
  const bool empty = TRY(root_is_empty(world.sysroot));
  if (!empty && !request.replace) {
    return fail(Kind::Usage, world.sysroot + " is not empty", "--replace removes what is there");
  }
  TRY(check_root_loader(world.sysroot, request.bootloader));
  VerifiedImage image = TRY(verify_for_install(world, settings, request));
  const bool made = !exists(world.sysroot);
  if (made) TRY(make_directories(world.sysroot));
  const Fd claim = TRY(claim_root(world.sysroot));
  if (!made && TRY(root_is_empty(world.sysroot)) != empty) {
    return fail(Kind::Busy, world.sysroot + " was empty a moment ago", "another installation went there");
  }
  bool replaced = false;
  auto done = install_there(world, settings, request, image, empty, replaced);
  if (!done) {
    if (replaced && done.error().kind == Kind::Busy) replaced = false;  // in use: nothing was removed
    undo(world, empty || replaced, made);
    done.error().changed = replaced;
    if (replaced) done.error().message += "; what ROOT held is gone";
    return fail(std::move(done.error()));
  }
  record(world, request, image.report);
  return std::move(image.report);
}

}  // namespace rasupd
