#pragma once
// OciLayout: an image in an OCI image layout (image-spec, image-layout.md), in a directory or in a tar of
// one.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/handle.hpp"
#include "base/stream.hpp"
#include "base/world.hpp"
#include "source/source.hpp"

namespace rasupd {

/// A stretch of an open file.
struct Extent {
  std::shared_ptr<Fd> file;
  std::uint64_t offset = 0, size = 0;
};
/// Finds a file of the layout by its path in it; nullopt when it is missing.
using LayoutFiles = std::function<Result<std::optional<Extent>>(const std::string&)>;

class OciLayout {
 public:
  /// Reads and checks `oci-layout` and `index.json`. Errors: NotFound (no layout there), Untrusted (damaged).
  static Result<OciLayout> open(const World& world, const Reference& reference, LayoutFiles files);

  Result<Document> resolve();
  Result<Document> manifest(const Digest& digest, const Descriptor* descriptor);
  Result<std::optional<Document>> tagged(const std::string& tag);
  Result<Reader> blob(const Descriptor& descriptor);
  std::uint64_t bytes_fetched() const { return *bytes_; }

 private:
  OciLayout(const World& world, const Reference& reference, LayoutFiles files)
      : world_(&world), reference_(reference), files_(std::move(files)) {}
  Result<void> read_index();
  Result<std::optional<Descriptor>> find(const std::string& tag) const;
  Result<Descriptor> single() const;
  Result<std::optional<std::string>> read_whole(const std::string& path, std::size_t max_bytes) const;

  const World* world_;
  Reference reference_;
  LayoutFiles files_;
  Index index_;
  std::shared_ptr<std::atomic<std::uint64_t>> bytes_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

/// The layout in the directory `reference.path`. Nothing in it is reached through a symlink.
Result<OciLayout> open_oci_directory(const World& world, const Reference& reference);
/// The layout in the uncompressed tar `reference.path`; blobs are read in place.
Result<OciLayout> open_oci_archive(const World& world, const Reference& reference);

}  // namespace rasupd
