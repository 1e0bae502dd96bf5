#pragma once
// The cosign tag carrier: the signatures of a manifest lie in the same repository under the tag
// sha256-<hex>.sig, a manifest whose layers are simple-signing payloads (cosign's SIGNATURE_SPEC).

#include <optional>
#include <string>
#include <vector>

#include "base/world.hpp"
#include "policy/trust.hpp"
#include "source/source.hpp"

namespace rasupd {

/// Only so many are looked at; where none of them is good, the flood is named (it may hide the one that
/// matters).
inline constexpr std::size_t kMaxSignatures = 128;
/// A payload has some 250 bytes; annotations of signers stay far below this.
inline constexpr std::size_t kMaxPayload = 64u << 10;

struct GatheredSignatures {
  std::vector<policy::Candidate> candidates;
  std::optional<Error> trouble;  ///< a carrier that could not be read (not: that is absent)
};
/// All signatures of all `subjects` ("sha256:…"), unverified. A candidate that cannot be read is one with a
/// problem. Error: Cancelled; everything else that went wrong is `trouble`.
Result<GatheredSignatures> gather_signatures(const World& world, Source& source,
                                             const std::vector<std::string>& subjects);

}  // namespace rasupd
