#pragma once
// One layer: blob bytes in, one verified commit and its ref out.

#include <cstdint>
#include <functional>
#include <string>

#include "base/world.hpp"
#include "image/manifest.hpp"
#include "import/layer_builder.hpp"

namespace rasupd {

/// Layers whose tree is the blob's, where ostree-ext looks for them.
inline constexpr std::string_view kBlobRefs = "ostree/container/blob/";
/// Layers with hardlinks into lower layers: ostree-ext would take their tree for the whole layer.
inline constexpr std::string_view kLayerRefs = "rasupd/layer/";
inline constexpr std::string_view kImageRefs = "ostree/container/image/";

// Metadata of a layer commit.
inline constexpr const char* kDiffIdKey = "rasupd.diff-id";
inline constexpr const char* kImpliedKey = "rasupd.implied";  ///< directories no entry described
inline constexpr const char* kLinksKey = "rasupd.links";      ///< path, target, path, target, …
inline constexpr const char* kDroppedKey = "rasupd.dropped";
/// Of a merged commit: how it was made. Commits without it are another program's.
inline constexpr const char* kFormatKey = "rasupd.format";
inline constexpr const char* kFormat = "1";

/// Layers that unpack to more than this and `kMaxRatio` times their size are refused: real layers stay below
/// 10, deflate reaches 1032, zstd more. The slack lets a layer hold a preallocated file of zeros.
inline constexpr std::uint64_t kMaxRatio = 100, kRatioSlack = 256u << 20;

/// Called with the count of compressed bytes that arrived.
using OnBytes = std::function<void(std::uint64_t)>;

/// Reads `blob` to its end (its reader checks digest and size), checks the diff_id, writes the objects and
/// the layer's commit. Nothing is published: the caller sets the ref and commits the writer. Errors:
/// Untrusted, Unsuitable, NoSpace, Cancelled, and what the reader returns.
struct LayerCommit {
  std::string commit, ref;
  std::uint64_t dropped = 0;
};
Result<LayerCommit> import_layer(const World& world, RepoWriter& writer, Reader blob, const Descriptor& layer,
                                 const Digest& diff_id, const OnBytes& on_bytes);

}  // namespace rasupd
