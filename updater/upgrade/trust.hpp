#pragma once
// Step 5 of an upgrade: who signed it? Reads the machine's own policy and keys (never the image's: R12),
// fetches the signatures and lets policy/ decide. Nothing of the image but its manifest has been fetched by
// then (R10).

#include "base/world.hpp"
#include "config/settings.hpp"
#include "policy/trust.hpp"
#include "upgrade/resolve.hpp"

namespace rasupd {

/// The reference in containers-policy.json(5)'s words. `digest`: the one asked for by --digest, which makes
/// the identity the digest alone.
Result<policy::Identity> policy_identity(const Reference& reference, const std::optional<Digest>& digest);

struct FoundPolicy {
  std::string path;
  policy::PolicyFile file;
};
/// The first of etc/rasupd/policy.json, usr/lib/rasupd/policy.json, etc/containers/policy.json beneath
/// `config_root`. Errors: Untrusted when there is none, Config when it cannot be read.
Result<FoundPolicy> find_policy(const std::string& config_root);

/// Verifies `image`. Errors: Untrusted, Config; Offline or Denied when signatures could not be fetched and
/// what was fetched does not suffice.
Result<policy::Accepted> verify_image(const World& world, const Settings& settings, Source& source,
                                      const ResolvedImage& image, const std::optional<Digest>& digest);

}  // namespace rasupd
