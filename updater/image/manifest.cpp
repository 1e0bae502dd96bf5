#include "image/manifest.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "image/json_fields.hpp"

namespace rasupd {
namespace {

constexpr std::string_view kOciConfig = "application/vnd.oci.image.config.v1+json";
constexpr std::string_view kDockerConfig = "application/vnd.docker.container.image.v1+json";
constexpr std::string_view kWhat = "manifest";

bool is_index_type(std::string_view type) {
  return type == kOciIndex || type == kDockerList;
}
bool is_manifest_type(std::string_view type) {
  return type == kOciManifest || type == kDockerManifest;
}

struct Document {
  Json json;
  std::string media_type;
  bool index = false;
};

/// The media type both the transport and the document agree on; empty when neither names one.
Result<std::string> agreed_type(const Json& json, std::string_view transport) {
  const auto embedded = TRY(json_optional_string(json, "mediaType", kWhat, Kind::Untrusted));
  if (!embedded) return std::string(transport);
  if (!transport.empty() && transport != *embedded) {
    return fail(Kind::Untrusted, fmt::format("manifest: it came as {} but calls itself {}",
                                             printable(transport, 120), printable(*embedded, 120)));
  }
  return *embedded;
}

Result<void> check_schema_version(const Json& json) {
  const auto version = TRY(json_unsigned(json, "schemaVersion", kWhat, Kind::Untrusted));
  if (version == 2) return {};
  return fail(Kind::Untrusted, fmt::format("manifest: schema version {} is not supported", version),
              version == 1 ? "push the image again with a current tool; schema 1 cannot be verified" : "");
}

/// Reads either kind; the fields decide what it is and the media type must say the same (CVE-2021-41190).
Result<Document> parse_document(std::string_view bytes, std::string_view transport) {
  Document document;
  document.json = TRY(parse_json(bytes, kWhat, Kind::Untrusted, kMaxManifestBytes));
  const Json& json = document.json;
  if (!json.is_object()) return fail(Kind::Untrusted, "manifest: not an object");
  TRY(check_no_folded_names(
      json, {"schemaVersion", "mediaType", "manifests", "config", "layers", "fsLayers", "annotations"},
      kWhat));
  TRY(check_schema_version(json));
  document.media_type = TRY(agreed_type(json, transport));
  if (json.contains("fsLayers")) return fail(Kind::Untrusted, "manifest: fields of schema 1 in it");
  document.index = json.contains("manifests");
  const bool single = json.contains("config") || json.contains("layers");
  if (document.index && single) return fail(Kind::Untrusted, "manifest: index and image manifest at once");
  if (!document.index && !single)
    return fail(Kind::Untrusted, "manifest: neither an index nor an image manifest");
  if (document.media_type.empty()) document.media_type = document.index ? kOciIndex : kOciManifest;
  const bool agrees =
      document.index ? is_index_type(document.media_type) : is_manifest_type(document.media_type);
  if (!agrees) {
    return fail(Kind::Untrusted, fmt::format("manifest: media type {} does not go with its fields",
                                             printable(document.media_type, 120)));
  }
  return document;
}

Result<Manifest> manifest_of(const Document& document) {
  if (document.index) return fail(Kind::Untrusted, "manifest: an index where an image manifest was expected");
  if (!document.json.contains("config")) return fail(Kind::Untrusted, "manifest: \"config\" is missing");
  Manifest manifest;
  manifest.media_type = document.media_type;
  manifest.config = TRY(parse_descriptor(document.json.at("config"), "manifest: config"));
  const Json* layers = TRY(json_array(document.json, "layers", kWhat));
  if (layers->size() > kMaxLayers) {
    return fail(Kind::Untrusted,
                fmt::format("manifest: {} layers, more than the {} allowed", layers->size(), kMaxLayers));
  }
  for (const Json& layer : *layers) {
    const std::string what = fmt::format("manifest: layer {}", manifest.layers.size());
    manifest.layers.push_back(TRY(parse_descriptor(layer, what)));
  }
  manifest.annotations = TRY(json_string_map(document.json, "annotations", kWhat, Kind::Untrusted));
  return manifest;
}

}  // namespace

Result<bool> is_index(std::string_view bytes, std::string_view media_type) {
  return TRY(parse_document(bytes, media_type)).index;
}

Result<Index> parse_index(std::string_view bytes, std::string_view media_type) {
  const Document document = TRY(parse_document(bytes, media_type));
  if (!document.index)
    return fail(Kind::Untrusted, "manifest: an image manifest where an index was expected");
  Index index;
  index.media_type = document.media_type;
  const Json* manifests = TRY(json_array(document.json, "manifests", kWhat));
  for (const Json& entry : *manifests) {
    const std::string what = fmt::format("index: entry {}", index.manifests.size());
    index.manifests.push_back(TRY(parse_descriptor(entry, what)));
  }
  index.annotations = TRY(json_string_map(document.json, "annotations", "index", Kind::Untrusted));
  return index;
}

Result<Manifest> parse_artifact_manifest(std::string_view bytes, std::string_view media_type) {
  return manifest_of(TRY(parse_document(bytes, media_type)));
}

Result<Manifest> parse_manifest(std::string_view bytes, std::string_view media_type) {
  Manifest manifest = TRY(parse_artifact_manifest(bytes, media_type));
  if (manifest.config.media_type != kOciConfig && manifest.config.media_type != kDockerConfig) {
    return fail(Kind::Untrusted, fmt::format("manifest: its config is {}, so it is not an image",
                                             printable(manifest.config.media_type, 120)));
  }
  if (manifest.layers.empty()) return fail(Kind::Untrusted, "manifest: an image without layers");
  for (std::size_t i = 0; i < manifest.layers.size(); ++i) {
    TRY(layer_compression(manifest.layers[i].media_type).within(fmt::format("manifest: layer {}", i)));
  }
  return manifest;
}

}  // namespace rasupd
