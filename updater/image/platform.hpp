#pragma once
// Which entry of an index is for this machine, and may an image of that config run here? (R2, R3)

#include <string>
#include <string_view>

#include "image/manifest.hpp"

namespace rasupd {

/// Go's name of a machine as uname(2) spells it: x86_64 → amd64, aarch64 → arm64, … Error Unsuitable for a
/// machine we do not know: an unknown architecture is refused, never guessed.
Result<std::string> architecture_of_machine(std::string_view uname_machine);
/// The same for the running kernel.
Result<std::string> host_architecture();

/// The first entry for linux and `architecture`, by containers/image's variant order; attestations
/// (os "unknown") are skipped. An entry without a platform counts only when it is the only one.
/// Error Unsuitable naming what the index offers.
Result<Descriptor> select_platform(const Index& index, std::string_view architecture);

/// The config's os and architecture must be linux and `architecture`. Error Unsuitable. (R118: an unsigned
/// index can point at a validly signed image of another architecture.)
Result<void> check_platform(const ImageConfig& config, std::string_view architecture);

}  // namespace rasupd
