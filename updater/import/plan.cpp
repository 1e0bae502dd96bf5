#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <map>
#include <set>

#include "base/text.hpp"
#include "import/import.hpp"
#include "import/layer_import.hpp"

namespace rasupd {
namespace {

/// Verified layers by diff_id. A layer without our mark is another program's: its content was set before it
/// was verified and its implied parents are not known, so it is a cache miss (its objects are still shared).
Result<std::map<std::string, std::string>> stored_layers(const Repo& repo) {
  std::map<std::string, std::string> out;
  for (const std::string_view prefix : {kBlobRefs, kLayerRefs}) {
    for (const auto& [ref, commit] : TRY(repo.list_refs(std::string(prefix)))) {
      const auto diff_id = repo.metadata(commit, kDiffIdKey);
      if (diff_id && *diff_id) out.emplace(**diff_id, commit);
    }
  }
  return out;
}

/// Debian root file systems unpack to 2.6 to 2.9 times their gzip size; a little less never refuses what
/// would have fitted. The exact size is known only when the layer was read, and is checked then.
std::uint64_t expanded_estimate(const Descriptor& layer) {
  const auto compression = layer_compression(layer.media_type);
  return compression && *compression == Compression::none ? layer.size : layer.size / 2 * 5;
}

}  // namespace

Result<ImportPlan> plan_import(const Repo& repo, const Manifest& manifest, const ImageConfig& config) {
  TRY(check_layers(manifest, config));
  const auto stored = TRY(stored_layers(repo));
  ImportPlan plan;
  std::set<Digest> counted;
  for (std::size_t i = 0; i < manifest.layers.size(); ++i) {
    LayerPlan layer{manifest.layers[i], config.diff_ids[i], false, {}};
    TRY(layer_compression(layer.layer.media_type));
    const auto it = stored.find(layer.diff_id.str());
    layer.present = it != stored.end();
    if (layer.present) layer.commit = it->second;
    ++(layer.present ? plan.present : plan.needed);
    if (counted.insert(layer.diff_id).second) {
      (layer.present ? plan.bytes_present : plan.bytes_needed) += layer.layer.size;
    }
    plan.layers.push_back(std::move(layer));
  }
  return plan;
}

std::uint64_t expanded_size(const Manifest& manifest) {
  std::uint64_t sum = 0;
  std::set<Digest> counted;
  for (const Descriptor& layer : manifest.layers) {
    if (counted.insert(layer.digest).second) sum += expanded_estimate(layer);
  }
  return sum;
}

Result<void> check_space(const ImportPlan& plan, const std::string& repo_path, std::uint64_t reserve) {
  std::uint64_t needed = 0;
  std::set<Digest> counted;
  for (const LayerPlan& layer : plan.layers) {
    if (!layer.present && counted.insert(layer.diff_id).second) needed += expanded_estimate(layer.layer);
  }
  if (needed == 0) return {};
  struct statvfs info {};
  if (::statvfs(repo_path.c_str(), &info) != 0)
    return fail_errno(errno, "asking for free space in " + repo_path);
  const std::uint64_t free = std::uint64_t{info.f_bavail} * info.f_frsize;
  if (needed + reserve <= free) return {};
  return fail(Kind::NoSpace,
              fmt::format("the file system of {}: about {} needed and {} to stay free, {} are free",
                          repo_path, human_size(needed), human_size(reserve), human_size(free)),
              "make room, for instance with: rasupd prune");
}

}  // namespace rasupd
