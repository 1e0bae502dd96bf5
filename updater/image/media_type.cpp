// Which media types are layers, and how they are compressed (OCI image-spec layer.md, Docker's schema 2).

#include <fmt/format.h>

#include "base/text.hpp"
#include "image/manifest.hpp"

namespace rasupd {
namespace {

struct LayerType {
  std::string_view media_type;
  Compression compression;
};

constexpr LayerType kLayerTypes[] = {
    {"application/vnd.oci.image.layer.v1.tar+gzip", Compression::gzip},
    {"application/vnd.oci.image.layer.v1.tar+zstd", Compression::zstd},
    {"application/vnd.oci.image.layer.v1.tar", Compression::none},
    {"application/vnd.docker.image.rootfs.diff.tar.gzip", Compression::gzip},
    {"application/vnd.docker.image.rootfs.diff.tar.zstd", Compression::zstd},
    {"application/vnd.docker.image.rootfs.diff.tar", Compression::none},
};

/// Layers that a registry does not carry: their bytes come from a URL in the manifest, which we never follow.
constexpr std::string_view kForeignLayers[] = {
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.docker.image.rootfs.foreign.diff.tar",
};

}  // namespace

Result<Compression> layer_compression(std::string_view media_type) {
  for (const LayerType& type : kLayerTypes) {
    if (media_type == type.media_type) return type.compression;
  }
  for (const auto foreign : kForeignLayers) {
    if (media_type.starts_with(foreign)) {
      return fail(Kind::Untrusted, fmt::format("layer type {} is non-distributable: its bytes are not in the "
                                               "registry",
                                               printable(media_type, 120)));
    }
  }
  return fail(Kind::Untrusted, fmt::format("unknown layer type \"{}\"", printable(media_type, 120)));
}

}  // namespace rasupd
