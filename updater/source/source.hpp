#pragma once
// Source: where one image comes from: a registry, an OCI layout directory or an OCI archive. It moves bytes
// and checks that they are what a descriptor or digest says; it decides nothing about trust.
//
// Errors: Offline (unreachable, timed out, 429/5xx after retries, a blob missing behind a good manifest),
// Denied (401/403; names registry, repository and credential file), NotFound (404 of a manifest),
// Untrusted (bytes that are not their digest or size, a manifest's media type that is not what was promised),
// Config (unreadable credentials), Cancelled.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/stream.hpp"
#include "base/world.hpp"
#include "image/manifest.hpp"
#include "image/reference.hpp"

namespace rasupd {

struct Settings;
class OciLayout;

/// A manifest's bytes as received. Verify before parsing.
struct Document {
  std::string bytes;
  std::string media_type;  ///< Content-Type without parameters, or the descriptor's mediaType
  Digest digest;           ///< our own hash of `bytes`
};

class Source {
 public:
  /// Nothing is fetched for a registry; an oci: layout's index.json is read. `world` must outlive the source.
  static Result<Source> open(const World& world, const Reference& reference, const Settings& settings);
  ~Source();
  Source(Source&&) noexcept;
  Source& operator=(Source&&) noexcept;

  /// What the reference names, index or manifest. When the reference carries a digest the bytes are checked
  /// against it. At most kMaxManifestBytes.
  Result<Document> resolve();
  /// A manifest or index by digest, from the same repository.
  Result<Document> manifest(const Digest& digest);
  /// A manifest an index points to: size, digest and media type are checked.
  Result<Document> manifest(const Descriptor& descriptor);
  /// The manifest under another tag of the same repository; nullopt when there is none. In a layout, the
  /// index.json entry whose org.opencontainers.image.ref.name is `tag`.
  Result<std::optional<Document>> tagged(const std::string& tag);
  /// A blob of at most `max_bytes`, whole, size and digest checked.
  Result<std::string> small_blob(const Descriptor& descriptor, std::size_t max_bytes);
  /// A blob as a stream. The reader checks size and digest: a lie is Untrusted at the latest where the end
  /// would be, so whoever read to the end (0) holds verified bytes. A cut transfer goes on by Range;
  /// readers of different blobs may be used in different threads.
  Result<Reader> blob(const Descriptor& descriptor);
  /// Bytes moved over the network or from the layout so far (all blobs and manifests).
  std::uint64_t bytes_fetched() const;

  struct Body;

 private:
  explicit Source(std::unique_ptr<Body> body);
  static Result<Source> with_layout(const Reference& reference, Result<OciLayout> opened);
  std::unique_ptr<Body> body_;
};

}  // namespace rasupd
