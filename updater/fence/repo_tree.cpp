// The reading half of Repo that looks inside commits.
#include <gio/gio.h>
#include <ostree.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "fence/repo_body.hpp"

namespace rasupd {
namespace {

/// The id in child `index` of `from`, an "ay" of 32 bytes.
Result<ObjectId> id_at(GVariant* from, gsize index) {
  const Variant bytes(g_variant_get_child_value(from, index));
  if (g_variant_get_size(bytes.get()) != 32)
    return fail(Kind::Failed, "the repository holds a malformed object id");
  ObjectId id;
  std::memcpy(id.bytes.data(), g_variant_get_data(bytes.get()), 32);
  return id;
}

std::string name_at(GVariant* from) {
  const Variant name(g_variant_get_child_value(from, 0));
  return g_variant_get_string(name.get(), nullptr);
}

Result<Variant> load(OstreeRepo* repo, OstreeObjectType type, const ObjectId& id) {
  GError* error = nullptr;
  GVariant* variant = nullptr;
  if (!ostree_repo_load_variant(repo, type, id.hex().c_str(), &variant, &error)) {
    return fail_gerror(error, "reading object " + id.hex());
  }
  return Variant(variant);
}

/// "a(ayay)" as a list; names carry their NUL in the variant.
std::vector<Xattr> xattrs_of(GVariant* list) {
  std::vector<Xattr> out;
  for (gsize i = 0; list && i < g_variant_n_children(list); ++i) {
    const Variant pair(g_variant_get_child_value(list, i));
    const Variant name(g_variant_get_child_value(pair.get(), 0)),
        value(g_variant_get_child_value(pair.get(), 1));
    const auto* data = static_cast<const char*>(g_variant_get_data(value.get()));
    out.push_back({g_variant_get_bytestring(name.get()),
                   std::string(data ? data : "", g_variant_get_size(value.get()))});
  }
  return out;
}

std::uint32_t big_endian(GVariant* from, gsize index) {
  const Variant value(g_variant_get_child_value(from, index));
  return GUINT32_FROM_BE(g_variant_get_uint32(value.get()));
}

}  // namespace

Result<DirectoryIds> Repo::root(const std::string& commit) const {
  GError* error = nullptr;
  GVariant* variant = nullptr;
  if (!ostree_repo_load_commit(body_->repo.get(), commit.c_str(), &variant, nullptr, &error)) {
    return fail_gerror(error, "reading commit " + commit);
  }
  const Variant owner(variant);
  // OSTREE_COMMIT_GVARIANT_FORMAT: "(a{sv}aya(say)sstayay)": the last two are the root.
  const auto tree = TRY(id_at(variant, 6)), meta = TRY(id_at(variant, 7));
  return DirectoryIds{tree, meta};
}

Result<DirectoryListing> Repo::list(const ObjectId& tree) const {
  const Variant variant = TRY(load(body_->repo.get(), OSTREE_OBJECT_TYPE_DIR_TREE, tree));
  const Variant files(g_variant_get_child_value(variant.get(), 0)),
      dirs(g_variant_get_child_value(variant.get(), 1));
  DirectoryListing out;
  for (gsize i = 0; i < g_variant_n_children(files.get()); ++i) {
    const Variant item(g_variant_get_child_value(files.get(), i));
    const auto id = TRY(id_at(item.get(), 1));
    out.leaves.emplace_back(name_at(item.get()), id);
  }
  for (gsize i = 0; i < g_variant_n_children(dirs.get()); ++i) {
    const Variant item(g_variant_get_child_value(dirs.get(), i));
    const auto below = TRY(id_at(item.get(), 1)), meta = TRY(id_at(item.get(), 2));
    out.directories.emplace_back(name_at(item.get()), DirectoryIds{below, meta});
  }
  return out;
}

Result<Attributes> Repo::directory_attributes(const ObjectId& meta) const {
  const Variant variant = TRY(load(body_->repo.get(), OSTREE_OBJECT_TYPE_DIR_META, meta));
  const Variant xattrs(g_variant_get_child_value(variant.get(), 3));
  return Attributes{big_endian(variant.get(), 0), big_endian(variant.get(), 1), big_endian(variant.get(), 2),
                    xattrs_of(xattrs.get())};
}

Result<LeafInfo> Repo::leaf(const ObjectId& id) const {
  GError* error = nullptr;
  GFileInfo* info = nullptr;
  GVariant* xattrs = nullptr;
  if (!ostree_repo_load_file(body_->repo.get(), id.hex().c_str(), nullptr, &info, &xattrs, nullptr, &error)) {
    return fail_gerror(error, "reading object " + id.hex());
  }
  const Object<GFileInfo> info_owner(info);
  const Variant xattrs_owner(xattrs);
  LeafInfo out;
  out.attributes = {g_file_info_get_attribute_uint32(info, "unix::uid"),
                    g_file_info_get_attribute_uint32(info, "unix::gid"),
                    g_file_info_get_attribute_uint32(info, "unix::mode"), xattrs_of(xattrs)};
  out.is_symlink = g_file_info_get_file_type(info) == G_FILE_TYPE_SYMBOLIC_LINK;
  if (out.is_symlink) {
    const char* target = g_file_info_get_symlink_target(info);
    out.target = target ? target : "";
  } else {
    out.size = static_cast<std::uint64_t>(g_file_info_get_size(info));
  }
  return out;
}

Result<Reader> Repo::content(const ObjectId& id) const {
  GError* error = nullptr;
  GInputStream* raw = nullptr;
  if (!ostree_repo_load_file(body_->repo.get(), id.hex().c_str(), &raw, nullptr, nullptr, nullptr, &error)) {
    return fail_gerror(error, "reading object " + id.hex());
  }
  if (!raw) return fail(Kind::Failed, "object " + id.hex() + " is a symlink, not a file");
  const std::shared_ptr<GInputStream> stream(raw, g_object_unref);
  return Reader([stream](std::span<std::byte> out) -> Result<std::size_t> {
    GError* failure = nullptr;
    const gssize n = g_input_stream_read(stream.get(), out.data(), out.size(), nullptr, &failure);
    if (n < 0) return fail_gerror(failure, "reading a file of the repository");
    return static_cast<std::size_t>(n);
  });
}

}  // namespace rasupd
