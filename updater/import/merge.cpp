#include <fmt/format.h>

#include <algorithm>

#include "base/failpoint.hpp"
#include "base/text.hpp"
#include "import/layer_import.hpp"
#include "import/overlay.hpp"
#include "import/pull.hpp"

namespace rasupd {
namespace {

TargetOf targets_in(const Repo& repo) {
  return [&repo](const ObjectId& id) -> Result<std::optional<std::string>> {
    LeafInfo info = TRY(repo.leaf(id));
    if (!info.is_symlink) return std::optional<std::string>{};
    return std::optional(std::move(info.target));
  };
}

Result<OverlayLayer> load_layer(const Repo& repo, const std::string& commit) {
  const DirectoryIds root = TRY(repo.root(commit));
  OverlayLayer layer{TRY(load_tree(repo, root))};
  mark_implied(layer.root, TRY(repo.metadata_list(commit, kImpliedKey)));
  const auto links = TRY(repo.metadata_list(commit, kLinksKey));
  for (std::size_t i = 0; i + 1 < links.size(); i += 2)
    layer.foreign_links.emplace_back(links[i], links[i + 1]);
  return layer;
}

/// Container builds leave empty bind mount targets behind; an empty resolv.conf would break a machine's
/// name resolution. ostree-ext removes the same two.
Result<void> drop_build_leftovers(const Repo& repo, Node& root) {
  Node* etc = find_node(root, {"usr", "etc"});
  for (const char* name : {"hostname", "resolv.conf"}) {
    const Node* node = etc ? etc->child(name) : nullptr;
    if (!node || node->is_directory()) continue;
    const LeafInfo info = TRY(repo.leaf(node->id));
    if (!info.is_symlink && info.size == 0) etc->children->erase(name);
  }
  // Images that were ostree commits once carry their object store; a deployment mounts the real one there.
  if (Node* sysroot = root.child("sysroot"); sysroot && sysroot->is_directory())
    sysroot->children->erase("ostree");
  return {};
}

Result<std::uint64_t> dropped_of(const Repo& repo, const std::vector<std::string>& layers) {
  std::uint64_t sum = 0;
  for (const std::string& commit : layers) {
    sum += std::strtoull(TRY(repo.metadata(commit, kDroppedKey)).value_or("0").c_str(), nullptr, 10);
  }
  return sum;
}

Result<std::string> merge(const World& world, const Repo& repo, RepoWriter& writer,
                          const ImageDocuments& image, const std::vector<std::string>& layers) {
  Overlay overlay(targets_in(repo));
  for (const std::string& commit : layers) {
    TRY(world.check_stop());
    OverlayLayer layer = TRY(load_layer(repo, commit));
    TRY(overlay.apply(std::move(layer)).within("merging layers"));
  }
  TRY(drop_build_leftovers(repo, overlay.root()));
  CommitSpec spec;
  spec.root = TRY(store_tree(writer, overlay.root()));
  spec.subject = "image " + image.manifest_digest.str();
  spec.timestamp = image_timestamp(image.manifest, image.config);
  spec.metadata = {{"ostree.manifest-digest", image.manifest_digest.str()},
                   {"ostree.manifest", image.manifest_bytes},
                   {"ostree.container.image-config", image.config_bytes},
                   {kFormatKey, kFormat}};
  const std::string version = image_version(image.manifest, image.config);
  if (!version.empty()) spec.metadata.emplace_back("version", version);
  return writer.write_commit(spec);
}

/// A commit that this program made of the same manifest, under any image ref.
Result<std::optional<std::string>> existing(const Repo& repo, const Digest& manifest) {
  for (const auto& [ref, commit] : TRY(repo.list_refs(std::string(kImageRefs)))) {
    const auto digest = repo.metadata(commit, "ostree.manifest-digest");
    const auto format = repo.metadata(commit, kFormatKey);
    if (digest && format && *digest == manifest.str() && *format == kFormat) return std::optional(commit);
  }
  return std::optional<std::string>{};
}

}  // namespace

Result<Imported> import_with(const World& world, Repo& repo, const Fetch& fetch, const ImageDocuments& image,
                             const ImportPlan& plan, const ImportOptions& options) {
  const std::string ref = std::string(kImageRefs) + escape_ref(image.reference.ref_key());
  if (const auto commit = TRY(existing(repo, image.manifest_digest))) {
    const auto current = TRY(repo.resolve(ref));
    if (current != commit) TRY(repo.set_ref(ref, commit));
    return Imported{*commit, 0};
  }
  const auto layers = TRY(pull_layers(world, repo, fetch, plan, options));
  TRY(failpoint("import-merge"));
  Imported out;
  {
    RepoWriter writer = TRY(RepoWriter::begin(repo));
    out.commit = TRY(merge(world, repo, writer, image, layers));
    TRY(world.check_stop());
    TRY(writer.commit());
  }
  TRY(check_bootable(repo, out.commit));
  TRY(failpoint("import-commit"));
  TRY(repo.set_ref(ref, out.commit));
  out.entries_dropped = TRY(dropped_of(repo, layers));
  return out;
}

}  // namespace rasupd
