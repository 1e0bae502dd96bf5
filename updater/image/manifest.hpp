#pragma once
// Manifest, index and config of an image as values, parsed strictly (OCI image-spec v1.1 manifest.md,
// image-index.md, config.md; Docker's schema 2 manifests and lists are accepted as their equals).
// Every error is Untrusted (a lie or damage) unless said; nothing here reads disk or network.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "image/digest.hpp"

namespace rasupd {

/// 4 MiB, the limit the distribution spec asks registries to accept and clients use.
inline constexpr std::size_t kMaxManifestBytes = 4u << 20;
inline constexpr std::size_t kMaxConfigBytes = 4u << 20;
/// A manifest with more layers than this is not an operating system image; podman stops at 127 too (overlay's limit is 500).
inline constexpr std::size_t kMaxLayers = 512;

struct Platform {
  std::string os, architecture, variant;
};

struct Descriptor {
  std::string media_type;
  Digest digest;
  std::uint64_t size = 0;
  std::map<std::string, std::string> annotations;
  std::optional<Platform> platform;
};

enum class Compression { none, gzip, zstd };

struct Manifest {
  std::string media_type;
  Descriptor config;
  std::vector<Descriptor> layers;
  std::map<std::string, std::string> annotations;
};

struct Index {
  std::string media_type;
  std::vector<Descriptor> manifests;
  std::map<std::string, std::string> annotations;
};

struct ImageConfig {
  std::string os, architecture, variant;
  std::string created;  ///< RFC 3339 as written, or empty
  std::map<std::string, std::string> labels;
  std::vector<Digest> diff_ids;
};

/// True when `media_type` (or, where that is empty, the document's fields) says index; both kinds' fields at
/// once, neither, or schema 1 is an error. `media_type` is the transport's word, the embedded one must agree.
Result<bool> is_index(std::string_view bytes, std::string_view media_type);
Result<Index> parse_index(std::string_view bytes, std::string_view media_type);
/// Also checks every layer's media type; layers of unknown or non-distributable type are refused.
Result<Manifest> parse_manifest(std::string_view bytes, std::string_view media_type);
/// A manifest of anything (a signature, an artifact): layer media types are not judged.
Result<Manifest> parse_artifact_manifest(std::string_view bytes, std::string_view media_type);
Result<ImageConfig> parse_config(std::string_view bytes);
/// Error Untrusted when the count of diff_ids is not the count of layers.
Result<void> check_layers(const Manifest& manifest, const ImageConfig& config);
/// Error Untrusted for a media type that is not a layer.
Result<Compression> layer_compression(std::string_view media_type);

/// `org.opencontainers.image.version`: manifest annotation, else config label; empty when neither.
std::string image_version(const Manifest& manifest, const ImageConfig& config);
/// Seconds since the epoch of the annotation `org.opencontainers.image.created`, else config `created`; 0 unknown.
std::int64_t image_timestamp(const Manifest& manifest, const ImageConfig& config);

/// Layers were made of these types; for tests and messages.
inline constexpr std::string_view kOciManifest = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view kOciIndex = "application/vnd.oci.image.index.v1+json";
inline constexpr std::string_view kDockerManifest = "application/vnd.docker.distribution.manifest.v2+json";
inline constexpr std::string_view kDockerList = "application/vnd.docker.distribution.manifest.list.v2+json";

}  // namespace rasupd
