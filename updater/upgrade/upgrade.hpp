#pragma once
// THE transaction: from a reference to the next boot's deployment. upgrade(), switch and install are the same
// steps; docs/life-of-an-update.md tells them in order. Until the step that stages, nothing that boots has
// changed.

#include <optional>
#include <string>
#include <vector>

#include "base/world.hpp"
#include "config/settings.hpp"
#include "deploy/deploy.hpp"
#include "import/import.hpp"
#include "policy/trust.hpp"
#include "upgrade/resolve.hpp"

namespace rasupd {

struct UpgradeRequest {
  std::string verb = "upgrade";     ///< for the journal
  std::optional<Reference> target;  ///< switch: what to track from now on; else the tracked reference
  std::optional<std::string> tag;   ///< upgrade --tag: another tag of the tracked repository
  std::optional<Digest> digest;     ///< --digest: fetched by digest, tracking stays
  bool check = false, download_only = false, from_downloaded = false, apply = false;
  bool allow_downgrade = false, retry_held = false;
};

struct UpgradeReport {
  bool changed = false;
  bool update_available = false;  ///< --check
  Reference reference;
  std::string digest, index_digest, version, architecture;
  std::size_t layers_present = 0, layers_needed = 0;
  std::uint64_t bytes_needed = 0, bytes_fetched = 0;
  std::optional<policy::Accepted> trust;
  bool staged = false, locked = false, rebooting = false;
  std::string held;  ///< --check: why the offered digest would not be taken; empty when it would
  std::vector<EtcNote> etc_notes;
  std::vector<std::string> warnings;
};

/// Upgrades, switches, checks. Errors by kind as the contract's exit codes; `Error::changed` is set when a
/// deployment was staged and only what followed failed. Writes a journal line but for --check.
Result<UpgradeReport> upgrade(const World& world, const Settings& settings, const UpgradeRequest& request);

/// What stands when every question has been answered and nothing has been written (steps 4 to 7).
struct Candidate {
  ResolvedImage image;
  ConfigDocument config;
  policy::Accepted trust;
  std::string version;
};
/// Steps 4 to 6: resolve, trust, suitable for `architecture`.
Result<Candidate> find_candidate(const World& world, const Settings& settings, Source& source,
                                 const Reference& reference, const std::optional<Digest>& digest,
                                 const std::string& architecture);
/// Steps 9 and 10 and the checks that need the commit: import, bootable, room in /boot. Returns the commit.
Result<Imported> import_candidate(const World& world, const Settings& settings, Source& source, Repo& repo,
                                  LockedHost& host, const Candidate& candidate, const ImportPlan& plan);
/// What the deploy room needs to know of a candidate.
NewDeployment deployment_of(const Candidate& candidate, const Reference& tracked, const std::string& commit,
                            const std::string& stateroot);
/// Removes what nothing needs any more: old deployments, then images and objects. Never fails the caller:
/// what went wrong is a warning.
void clean_up(LockedHost& host, Repo& repo, std::vector<std::string>& warnings);

/// The name under which a repository's version floor is kept.
std::string floor_key(const Reference& reference);

}  // namespace rasupd
