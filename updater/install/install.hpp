#pragma once
// First installation into a mounted file system or a directory (R38, R103 in part). The same questions and
// the same import as an upgrade; then a fresh sysroot, the image's /var once, and the first deployment.

#include <functional>
#include <string>
#include <vector>

#include "source/source.hpp"
#include "upgrade/upgrade.hpp"

namespace rasupd {

struct InstallRequest {
  Reference image;
  std::string stateroot = "default";
  std::string architecture;  ///< empty: this machine's
  std::vector<std::string> kargs;
  std::string bootloader = "none";  ///< to-filesystem: see root_boot.hpp
  bool replace = false;          ///< ROOT may have content; it is removed once the image is known to be good
  bool allow_downgrade = false;  ///< accepted for symmetry; a fresh machine has no floor
};

/// Installs into world.sysroot. Errors: Usage (ROOT missing, not a directory, has content), and upgrade()'s.
/// A failure before the image was verified touches nothing; one after leaves ROOT empty again (as `replace`
/// did).
Result<UpgradeReport> install_to_filesystem(const World& world, const Settings& settings,
                                            const InstallRequest& request);

/// Names that would leave their place, or do not survive in a boot entry. Error Usage; asks nothing else.
Result<void> check_install_request(const InstallRequest& request);

/// An image about which every question is answered; nothing has been written.
struct VerifiedImage {
  Source source;
  Candidate candidate;
  UpgradeReport report;  ///< who it is; the installation adds what it did
};
Result<VerifiedImage> verify_for_install(const World& world, const Settings& settings,
                                         const InstallRequest& request);

/// Called with the image's commit when it is in the repository and nothing is deployed.
using BeforeDeploy = std::function<Result<void>(const std::string& commit)>;
/// Installs into world.sysroot, file systems that were just made; returns the deployment's directory. What a
/// failure leaves there is the caller's.
Result<std::string> install_on_fresh_root(const World& world, const Settings& settings,
                                          const InstallRequest& request, VerifiedImage& image,
                                          const BeforeDeploy& before_deploy);

}  // namespace rasupd
