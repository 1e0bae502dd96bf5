#pragma once
// The origin file of a deployment: what it was made from, as ostree-ext, bootc and rasupd read it.

#include <string>

#include "deploy/deploy.hpp"

namespace rasupd {

/// [origin] container-image-reference and our group [rasupd].
std::string make_origin(const NewDeployment& what);

/// Fills origin, image, digests, signature and pin of `deployment` from the text of its origin file. Returns
/// a problem, or nothing, in words for a person.
std::string read_origin(const std::string& text, Deployment& deployment);

}  // namespace rasupd
