#include <algorithm>
#include <set>

#include "import/import.hpp"
#include "import/layer_import.hpp"

namespace rasupd {
namespace {

Result<Manifest> stored_manifest(const Repo& repo, const std::string& commit) {
  const auto bytes = TRY(repo.metadata(commit, "ostree.manifest"));
  if (!bytes) return fail(Kind::Failed, "commit " + commit + " carries no manifest");
  return parse_manifest(*bytes, "");
}

/// Contents (diff_ids) and blobs a commit's documents name; nullopt when either cannot be read.
std::optional<std::set<Digest>> needed_layers(const Repo& repo, const std::string& commit) {
  const auto manifest = stored_manifest(repo, commit);
  const auto bytes = repo.metadata(commit, "ostree.container.image-config");
  if (!manifest || !bytes || !*bytes) return std::nullopt;
  const auto config = parse_config(**bytes);
  if (!config) return std::nullopt;
  std::set<Digest> out(config->diff_ids.begin(), config->diff_ids.end());
  for (const Descriptor& layer : manifest->layers) out.insert(layer.digest);
  return out;
}

/// What a layer ref stands for: its blob, and its content where the commit says it.
std::set<Digest> names_of(const Repo& repo, std::string_view prefix, const std::string& ref,
                          const std::string& commit) {
  std::set<Digest> out;
  if (const auto blob = Digest::parse(unescape_ref(std::string_view(ref).substr(prefix.size()))))
    out.insert(*blob);
  const auto diff_id = repo.metadata(commit, kDiffIdKey);
  if (!diff_id || !*diff_id) return out;
  if (const auto digest = Digest::parse(**diff_id)) out.insert(*digest);
  return out;
}

Result<std::vector<std::string>> unneeded_layers(const Repo& repo, const std::set<Digest>& needed) {
  std::vector<std::string> out;
  for (const std::string_view prefix : {kBlobRefs, kLayerRefs}) {
    for (const auto& [ref, commit] : TRY(repo.list_refs(std::string(prefix)))) {
      const auto names = names_of(repo, prefix, ref, commit);
      const bool kept = names.empty() || std::any_of(names.begin(), names.end(),
                                                     [&](const Digest& d) { return needed.contains(d); });
      if (!kept) out.push_back(ref);
    }
  }
  return out;
}

}  // namespace

Result<std::vector<StoredImage>> list_images(const Repo& repo) {
  std::vector<StoredImage> out;
  for (const auto& [ref, commit] : TRY(repo.list_refs(std::string(kImageRefs)))) {
    StoredImage image;
    image.ref_key = unescape_ref(std::string_view(ref).substr(kImageRefs.size()));
    image.commit = commit;
    if (const auto digest = repo.metadata(commit, "ostree.manifest-digest"); digest)
      image.manifest_digest = digest->value_or("");
    if (const auto manifest = stored_manifest(repo, commit)) {
      image.layers = manifest->layers.size();
      for (const Descriptor& layer : manifest->layers) image.bytes += layer.size;
    }
    out.push_back(std::move(image));
  }
  return out;
}

Result<Pruned> prune_images(Repo& repo, const std::vector<std::string>& kept_commits, bool dry_run) {
  Pruned pruned;
  std::vector<std::string> refs;
  for (const auto& [ref, commit] : TRY(repo.list_refs(std::string(kImageRefs)))) {
    if (std::find(kept_commits.begin(), kept_commits.end(), commit) == kept_commits.end())
      refs.push_back(ref);
  }
  pruned.images = refs.size();
  std::set<Digest> needed;
  bool known = true;
  for (const std::string& commit : kept_commits) {
    const auto layers = needed_layers(repo, commit);
    if (layers) needed.insert(layers->begin(), layers->end());
    known = known && layers;
  }
  if (known) {
    auto layers = TRY(unneeded_layers(repo, needed));
    pruned.layers = layers.size();
    refs.insert(refs.end(), layers.begin(), layers.end());
  }
  if (dry_run) return pruned;
  for (const std::string& ref : refs) TRY(repo.set_ref(ref, std::nullopt));
  const PruneCount count = TRY(repo.prune(kept_commits));
  pruned.objects = count.objects;
  pruned.bytes = count.bytes;
  return pruned;
}

}  // namespace rasupd
