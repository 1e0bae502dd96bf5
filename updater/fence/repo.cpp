#include "fence/repo.hpp"

#include <fcntl.h>
#include <gio/gio.h>
#include <ostree.h>

#include <cstring>

#include "base/files.hpp"
#include "fence/repo_body.hpp"

namespace rasupd {
namespace {

using Text = std::unique_ptr<char, Deleter<g_free>>;
using Table = std::unique_ptr<GHashTable, Deleter<g_hash_table_unref>>;

/// member `key` of a commit's metadata when it has type `type`.
Variant metadata_member(GVariant* commit, const std::string& key, const char* type) {
  const Variant metadata(g_variant_get_child_value(commit, 0));
  return Variant(g_variant_lookup_value(metadata.get(), key.c_str(), G_VARIANT_TYPE(type)));
}

Result<Variant> load_commit(OstreeRepo* repo, const std::string& commit) {
  GError* error = nullptr;
  GVariant* variant = nullptr;
  if (!ostree_repo_load_commit(repo, commit.c_str(), &variant, nullptr, &error)) {
    return fail_gerror(error, "reading commit " + commit);
  }
  return Variant(variant);
}

}  // namespace

Result<Object<OstreeRepo>> open_repo_handle(const std::string& path) {
  const Object<GFile> file(g_file_new_for_path(path.c_str()));
  Object<OstreeRepo> repo(ostree_repo_new(file.get()));
  GError* error = nullptr;
  if (!ostree_repo_open(repo.get(), nullptr, &error)) return fail_gerror(error, "opening repository " + path);
  return repo;
}

Repo::Repo(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Repo::~Repo() = default;
Repo::Repo(Repo&&) noexcept = default;
Repo& Repo::operator=(Repo&&) noexcept = default;

Result<Repo> Repo::open(const std::string& path) {
  auto body = std::make_unique<Body>();
  body->path = path;
  body->repo = TRY(open_repo_handle(path));
  return Repo(std::move(body));
}

const std::string& Repo::path() const {
  return body_->path;
}

Result<std::optional<std::string>> Repo::resolve(const std::string& ref) const {
  GError* error = nullptr;
  char* commit = nullptr;
  if (!ostree_repo_resolve_rev(body_->repo.get(), ref.c_str(), TRUE, &commit, &error)) {
    return fail_gerror(error, "reading ref " + ref);
  }
  const Text owner(commit);
  return commit ? std::optional<std::string>(commit) : std::nullopt;
}

Result<std::map<std::string, std::string>> Repo::list_refs(const std::string& prefix) const {
  GError* error = nullptr;
  GHashTable* refs = nullptr;
  if (!ostree_repo_list_refs(body_->repo.get(), nullptr, &refs, nullptr, &error)) {
    return fail_gerror(error, "listing refs");
  }
  const Table owner(refs);
  std::map<std::string, std::string> out;
  GHashTableIter iter;
  gpointer name = nullptr, commit = nullptr;
  g_hash_table_iter_init(&iter, refs);
  while (g_hash_table_iter_next(&iter, &name, &commit)) {
    std::string ref(static_cast<const char*>(name));
    if (ref.starts_with(prefix)) out.emplace(std::move(ref), static_cast<const char*>(commit));
  }
  return out;
}

Result<bool> Repo::has_commit(const std::string& commit) const {
  GError* error = nullptr;
  gboolean have = FALSE;
  if (!ostree_repo_has_object(body_->repo.get(), OSTREE_OBJECT_TYPE_COMMIT, commit.c_str(), &have, nullptr,
                              &error)) {
    return fail_gerror(error, "looking for commit " + commit);
  }
  return have != FALSE;
}

Result<std::optional<std::string>> Repo::metadata(const std::string& commit, const std::string& key) const {
  const Variant variant = TRY(load_commit(body_->repo.get(), commit));
  const Variant value = metadata_member(variant.get(), key, "s");
  if (!value) return std::optional<std::string>{};
  return std::optional<std::string>(g_variant_get_string(value.get(), nullptr));
}

Result<std::vector<std::string>> Repo::metadata_list(const std::string& commit,
                                                     const std::string& key) const {
  const Variant variant = TRY(load_commit(body_->repo.get(), commit));
  const Variant value = metadata_member(variant.get(), key, "as");
  std::vector<std::string> out;
  if (!value) return out;
  for (gsize i = 0; i < g_variant_n_children(value.get()); ++i) {
    const Variant item(g_variant_get_child_value(value.get(), i));
    out.emplace_back(g_variant_get_string(item.get(), nullptr));
  }
  return out;
}

Result<void> Repo::set_ref(const std::string& ref, const std::optional<std::string>& commit) {
  GError* error = nullptr;
  const char* target = commit ? commit->c_str() : nullptr;
  if (!ostree_repo_set_ref_immediate(body_->repo.get(), nullptr, ref.c_str(), target, nullptr, &error)) {
    return fail_gerror(error, "setting ref " + ref);
  }
  // libostree syncs the new file but not the name of it.
  std::string directory = path_join(body_->path, "refs/heads/" + ref);
  directory.resize(directory.rfind('/'));
  if (exists(directory)) TRY(fsync_directory(directory));
  return {};
}

Result<PruneCount> Repo::prune(const std::vector<std::string>& kept) {
  OstreeRepo* repo = body_->repo.get();
  GError* error = nullptr;
  // What is reachable must not change between the walk and the removal.
  const std::unique_ptr<OstreeRepoAutoLock, Deleter<ostree_repo_auto_lock_cleanup>> lock(
      ostree_repo_auto_lock_push(repo, OSTREE_REPO_LOCK_EXCLUSIVE, nullptr, &error));
  if (!lock) return fail_gerror(error, "locking the repository");
  const Table reachable(ostree_repo_traverse_new_reachable());
  std::vector<std::string> commits = kept;
  for (const auto& [ref, commit] : TRY(list_refs(""))) commits.push_back(commit);
  for (const std::string& commit : commits) {
    if (!ostree_repo_traverse_commit_union(repo, commit.c_str(), 0, reachable.get(), nullptr, &error)) {
      return fail_gerror(error, "walking commit " + commit);
    }
  }
  OstreeRepoPruneOptions options{};
  options.flags = OSTREE_REPO_PRUNE_FLAGS_NONE;
  options.reachable = reachable.get();
  gint total = 0, pruned = 0;
  guint64 bytes = 0;
  if (!ostree_repo_prune_from_reachable(repo, &options, &total, &pruned, &bytes, nullptr, &error)) {
    return fail_gerror(error, "pruning the repository");
  }
  return PruneCount{static_cast<std::uint64_t>(pruned), bytes};
}

}  // namespace rasupd
