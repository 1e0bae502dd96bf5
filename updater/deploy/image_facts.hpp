#pragma once
// What a deployed commit says about the image it was made from. Lenient: the commit was verified when it came
// in, and a status that fails because of one odd field helps nobody.

#include "deploy/host.hpp"

namespace rasupd {

/// Fills manifest_digest, version, architecture and timestamp from the commit in `repo` (a path); leaves
/// empty what is not there.
void read_image_facts(const std::string& repo, Deployment& deployment);

/// The architecture in a stored image config, OCI's word; empty when there is none.
std::string config_architecture(const std::string& config);

}  // namespace rasupd
