#pragma once
// Step 4 and 6 of an upgrade: the reference becomes one manifest, once, by digest; its bytes stay in memory
// and nothing is asked by tag again. Then: is it for this machine, and is it an operating system?

#include <optional>
#include <string>

#include "image/manifest.hpp"
#include "image/reference.hpp"
#include "source/source.hpp"

namespace rasupd {

struct ResolvedImage {
  Reference reference;            ///< as asked for
  std::optional<Document> index;  ///< when the reference named an index
  Document document;              ///< the per-architecture manifest
  Manifest manifest;
};

/// `digest` (an index or a per-arch manifest of the same repository) replaces the reference's tag when given.
/// Errors: Source's, Unsuitable (no entry for the architecture), Untrusted.
Result<ResolvedImage> resolve_image(Source& source, const Reference& reference,
                                    const std::optional<Digest>& digest, const std::string& architecture);

struct ConfigDocument {
  std::string bytes;
  ImageConfig config;
};
/// The image's config, whole and verified, its diff_ids counted. Errors: Source's, Untrusted.
Result<ConfigDocument> fetch_config(Source& source, const Manifest& manifest);

}  // namespace rasupd
