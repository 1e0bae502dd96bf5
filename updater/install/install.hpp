#pragma once
// First installation into a mounted file system or a directory (R38, R103 in part). The same questions and
// the same import as an upgrade; then a fresh sysroot, the image's /var once, and the first deployment.

#include <string>
#include <vector>

#include "upgrade/upgrade.hpp"

namespace rasupd {

struct InstallRequest {
  Reference image;
  std::string stateroot = "default";
  std::string architecture;  ///< empty: this machine's
  std::vector<std::string> kargs;
  bool replace = false;          ///< ROOT may have content; it is removed once the image is known to be good
  bool allow_downgrade = false;  ///< accepted for symmetry; a fresh machine has no floor
};

/// Installs into world.sysroot. Errors: Usage (ROOT missing, not a directory, has content), and upgrade()'s.
/// A failure before the image was verified touches nothing; one after leaves ROOT empty again (as `replace`
/// did).
Result<UpgradeReport> install_to_filesystem(const World& world, const Settings& settings,
                                            const InstallRequest& request);

}  // namespace rasupd
