// Steps 4 to 10 without what boots next: questions first, then bytes.

#include <fmt/format.h>

#include "base/failpoint.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "image/platform.hpp"
#include "upgrade/trust.hpp"
#include "upgrade/upgrade.hpp"

namespace rasupd {
namespace {

/// What must not stand still for ever on a machine that nobody watches: a kernel that panics (kernel-parameters.txt;
/// initramfs-tools takes the same word for its own failures) and an emergency in dracut's initramfs (dracut.cmdline(7)).
const std::vector<std::string> kRebootWhenStuck = {"panic=10", "rd.shell=0", "rd.emergency=reboot"};

}  // namespace

Result<Candidate> find_candidate(const World& world, const Settings& settings, Source& source,
                                 const Reference& reference, const std::optional<Digest>& digest,
                                 const std::string& architecture) {
  Candidate candidate;
  TRY(failpoint("resolve"));
  TRY(world.check_stop());
  candidate.image = TRY(resolve_image(source, reference, digest, architecture));
  TRY(failpoint("trust"));
  TRY(world.check_stop());
  candidate.trust = TRY(verify_image(world, settings, source, candidate.image, digest));
  TRY(failpoint("suitable"));
  TRY(world.check_stop());
  candidate.config = TRY(fetch_config(source, candidate.image.manifest));
  TRY(check_platform(candidate.config.config, architecture).within(reference.str()));
  TRY(check_bootable_label(candidate.config.config).within(reference.str()));
  candidate.version = image_version(candidate.image.manifest, candidate.config.config);
  return candidate;
}

Result<Imported> import_candidate(const World& world, const Settings& settings, Source& source, Repo& repo,
                                  LockedHost& host, const Candidate& candidate, const ImportPlan& plan) {
  TRY(failpoint("import"));
  TRY(world.check_stop());
  const std::string repo_path = path_join(world.sysroot, "ostree/repo");
  TRY(check_space(plan, repo_path, settings.reserve));
  ImageDocuments documents;
  documents.reference = candidate.image.reference;
  documents.manifest_digest = candidate.image.document.digest;
  documents.manifest_bytes = candidate.image.document.bytes;
  documents.config_bytes = candidate.config.bytes;
  documents.manifest = candidate.image.manifest;
  documents.config = candidate.config.config;
  Imported imported = TRY(import_image(world, repo, source, documents, plan, {settings.parallel}));
  TRY(check_bootable(repo, imported.commit).within(candidate.image.reference.str()));
  const KernelInfo kernel = TRY(find_kernel(repo, imported.commit));
  TRY(check_boot_space(host, kernel.bytes, imported.commit));
  return imported;
}

NewDeployment deployment_of(const Candidate& candidate, const Reference& tracked, const std::string& commit,
                            const std::string& stateroot) {
  NewDeployment next;
  next.commit = commit;
  next.stateroot = stateroot;
  next.tracked = tracked;
  next.manifest_digest = candidate.image.document.digest.str();
  if (candidate.image.index) next.index_digest = candidate.image.index->digest.str();
  next.signature_rule = candidate.trust.rule;
  next.signature_key = candidate.trust.key;
  next.signature_carrier = candidate.trust.carrier;
  next.ensure_kargs = kRebootWhenStuck;
  return next;
}

void clean_up(LockedHost& host, Repo& repo, std::vector<std::string>& warnings) {
  auto cleaned = clean_deployments(host, false);
  if (!cleaned) {
    warnings.push_back("clean-up skipped: " + cleaned.error().message);
    return;
  }
  std::vector<std::string> kept;
  for (const Deployment& deployment : host.state().deployments) kept.push_back(deployment.checksum);
  if (auto pruned = prune_images(repo, kept, false); !pruned) {
    warnings.push_back("clean-up of old layers skipped: " + pruned.error().message);
  }
}

std::string floor_key(const Reference& reference) {
  if (reference.transport == Transport::registry) return reference.host + "/" + reference.repository;
  return reference.path;
}

}  // namespace rasupd
