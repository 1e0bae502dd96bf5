#include "upgrade/resolve.hpp"

#include <algorithm>

#include "image/platform.hpp"

namespace rasupd {
namespace {

/// A manifest named by digest may be signed only through the index it stands in: the one the tag names now,
/// if that lists it. Whatever goes wrong here only means that there is no such index.
std::optional<Document> index_listing(Source& source, const Digest& manifest) {
  auto named = source.resolve();
  if (!named || !is_index(named->bytes, named->media_type).value_or(false)) return std::nullopt;
  const auto index = parse_index(named->bytes, named->media_type);
  if (!index) return std::nullopt;
  const bool listed = std::any_of(index->manifests.begin(), index->manifests.end(),
                                  [&](const Descriptor& entry) { return entry.digest == manifest; });
  return listed ? std::optional(std::move(*named)) : std::nullopt;
}

}  // namespace

Result<ResolvedImage> resolve_image(Source& source, const Reference& reference,
                                    const std::optional<Digest>& digest, const std::string& architecture) {
  ResolvedImage image;
  image.reference = reference;
  Document named = TRY(digest ? source.manifest(*digest) : source.resolve());
  if (!TRY(is_index(named.bytes, named.media_type))) {
    image.manifest = TRY(parse_manifest(named.bytes, named.media_type));
    if (digest) image.index = index_listing(source, named.digest);
    image.document = std::move(named);
    return image;
  }
  const Index index = TRY(parse_index(named.bytes, named.media_type));
  const Descriptor entry = TRY(select_platform(index, architecture).within(reference.str()));
  image.index = std::move(named);
  image.document = TRY(source.manifest(entry));
  image.manifest = TRY(parse_manifest(image.document.bytes, image.document.media_type));
  return image;
}

Result<ConfigDocument> fetch_config(Source& source, const Manifest& manifest) {
  ConfigDocument document;
  document.bytes =
      TRY(source.small_blob(manifest.config, kMaxConfigBytes).within("fetching the image's config"));
  document.config = TRY(parse_config(document.bytes));
  TRY(check_layers(manifest, document.config));
  return document;
}

}  // namespace rasupd
