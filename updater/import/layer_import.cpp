#include "import/layer_import.hpp"

#include <fmt/format.h>

#include <memory>

#include "base/text.hpp"
#include "fence/inflate.hpp"
#include "import/import.hpp"

namespace rasupd {
namespace {

constexpr std::size_t kDrainBlock = 128 * 1024;

/// The expanded stream on its way to the tar reader: hashed, bounded, stoppable, and readable past its end.
struct Expanded {
  const World& world;
  Reader input;
  std::uint64_t left;
  Sha256 hash{};
  bool ended = false;

  Result<std::size_t> read(std::span<std::byte> out) {
    if (ended) return std::size_t{0};
    TRY(world.check_stop());
    const std::size_t n = TRY(input(out));
    if (n == 0) ended = true;
    if (n > left) {
      return fail(Kind::Untrusted, "the layer unpacks to more than its size allows",
                  "it may be a decompression bomb");
    }
    left -= n;
    hash.update(out.first(n));
    return n;
  }
};

Result<Reader> expanding(Reader blob, const Descriptor& layer) {
  switch (TRY(layer_compression(layer.media_type))) {
    case Compression::gzip:
      return inflate_gzip(std::move(blob));
    case Compression::zstd:
      return inflate_zstd(std::move(blob));
    case Compression::none:
      break;
  }
  return blob;
}

Reader counted(Reader blob, const OnBytes& on_bytes) {
  return [blob = std::move(blob), on_bytes](std::span<std::byte> out) -> Result<std::size_t> {
    const std::size_t n = TRY(blob(out));
    if (n != 0 && on_bytes) on_bytes(n);
    return n;
  };
}

Result<void> read_entries(TarReader& tar, LayerBuilder& builder, const World& world) {
  const Reader content = [&tar](std::span<std::byte> out) { return tar.read(out); };
  TRY(builder.begin());
  TarEntry entry;
  while (TRY(tar.next(entry))) {
    TRY(world.check_stop());
    TRY(builder.add(entry, content).within(printable(entry.path, 200)));
  }
  return {};
}

Result<LayerCommit> commit_layer(RepoWriter& writer, const LayerTree& tree, const Descriptor& layer,
                                 const Digest& diff_id) {
  CommitSpec spec;
  spec.root = TRY(store_tree(writer, tree.root));
  spec.subject = "layer " + layer.digest.str();
  spec.metadata = {{kDiffIdKey, diff_id.str()}, {kDroppedKey, std::to_string(tree.dropped)}};
  std::vector<std::string> links;
  for (const auto& [path, target] : tree.foreign_links) links.insert(links.end(), {path, target});
  spec.metadata_lists = {{kImpliedKey, implied_paths(tree.root)}, {kLinksKey, links}};
  LayerCommit out;
  out.commit = TRY(writer.write_commit(spec));
  out.ref = std::string(links.empty() ? kBlobRefs : kLayerRefs) + escape_ref(layer.digest.str());
  out.dropped = tree.dropped;
  return out;
}

}  // namespace

Result<LayerCommit> import_layer(const World& world, RepoWriter& writer, Reader blob, const Descriptor& layer,
                                 const Digest& diff_id, const OnBytes& on_bytes) {
  const std::uint64_t allowed = layer.size * kMaxRatio + kRatioSlack;
  Reader plain = TRY(expanding(counted(std::move(blob), on_bytes), layer));
  const auto expanded = std::make_shared<Expanded>(Expanded{world, std::move(plain), allowed});
  const Reader stream = [expanded](std::span<std::byte> out) { return expanded->read(out); };
  LayerBuilder builder(writer, allowed);
  {
    TarReader tar(stream);
    TRY(read_entries(tar, builder, world));
  }
  std::vector<std::byte> rest(kDrainBlock);
  while (TRY(stream(rest)) != 0) {
  }
  const std::string found = expanded->hash.finish_hex();
  if (found != diff_id.hex()) {
    return fail(Kind::Untrusted, fmt::format("the layer's content is sha256:{}, the image's config says {}",
                                             found, diff_id.str()));
  }
  return commit_layer(writer, TRY(builder.finish()), layer, diff_id);
}

}  // namespace rasupd
