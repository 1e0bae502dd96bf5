#include "fence/repo_writer.hpp"

#include <fcntl.h>
#include <gio/gio.h>
#include <gio/gunixinputstream.h>
#include <ostree.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/files.hpp"
#include "base/text.hpp"
#include "fence/repo_body.hpp"

namespace rasupd {
namespace {

/// "a(ayay)" of sorted xattrs.
Variant xattr_variant(const std::vector<Xattr>& xattrs) {
  GVariantBuilder builder;
  g_variant_builder_init(&builder, G_VARIANT_TYPE("a(ayay)"));
  for (const Xattr& xattr : xattrs) {
    g_variant_builder_add(
        &builder, "(@ay@ay)", g_variant_new_bytestring(xattr.name.c_str()),
        g_variant_new_fixed_array(G_VARIANT_TYPE_BYTE, xattr.value.data(), xattr.value.size(), 1));
  }
  return Variant(g_variant_ref_sink(g_variant_builder_end(&builder)));
}

Object<GFileInfo> file_info(const Attributes& attributes, std::uint64_t size) {
  Object<GFileInfo> info(g_file_info_new());
  g_file_info_set_attribute_uint32(info.get(), "unix::uid", attributes.uid);
  g_file_info_set_attribute_uint32(info.get(), "unix::gid", attributes.gid);
  g_file_info_set_attribute_uint32(info.get(), "unix::mode", attributes.mode);
  g_file_info_set_size(info.get(), static_cast<goffset>(size));
  const auto type = attributes.mode & S_IFMT;
  g_file_info_set_file_type(info.get(), type == S_IFDIR ? G_FILE_TYPE_DIRECTORY : G_FILE_TYPE_REGULAR);
  return info;
}

GVariant* id_variant(const ObjectId& id) {
  return g_variant_new_fixed_array(G_VARIANT_TYPE_BYTE, id.bytes.data(), id.bytes.size(), 1);
}

std::string object_path(const ObjectId& id) {
  const std::string hex = id.hex();
  return "objects/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".file";
}

template <class List>
void sort_by_name(List& list) {
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
}

}  // namespace

struct RepoWriter::State {
  Object<OstreeRepo> repo;
  Fd directory;
  bool open = false;

  ~State() {
    if (open) ostree_repo_abort_transaction(repo.get(), nullptr, nullptr);
  }
  Result<void> prepare() {
    GError* error = nullptr;
    if (!ostree_repo_prepare_transaction(repo.get(), nullptr, nullptr, &error)) {
      return fail_gerror(error, "starting a repository transaction");
    }
    open = true;
    return {};
  }
  Result<void> write(const ObjectId& id, GInputStream* stream, std::uint64_t length) {
    GError* error = nullptr;
    if (!ostree_repo_write_content_trusted(repo.get(), id.hex().c_str(), stream, length, nullptr, &error)) {
      return fail_gerror(error, "writing to the repository");
    }
    return {};
  }
  Result<ObjectId> write_metadata(OstreeObjectType type, GVariant* variant) {
    GError* error = nullptr;
    guchar* raw = nullptr;
    if (!ostree_repo_write_metadata(repo.get(), type, nullptr, variant, &raw, nullptr, &error)) {
      return fail_gerror(error, "writing to the repository");
    }
    const std::unique_ptr<guchar, Deleter<g_free>> owner(raw);
    ObjectId id;
    std::memcpy(id.bytes.data(), raw, 32);
    return id;
  }
};

RepoWriter::RepoWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
RepoWriter::~RepoWriter() = default;
RepoWriter::RepoWriter(RepoWriter&&) noexcept = default;
RepoWriter& RepoWriter::operator=(RepoWriter&&) noexcept = default;

Result<RepoWriter> RepoWriter::begin(const Repo& repo) {
  auto state = std::make_unique<State>();
  state->repo = TRY(open_repo_handle(repo.path()));
  state->directory = TRY(open_directory(repo.path()));
  TRY(state->prepare());
  return RepoWriter(std::move(state));
}

Result<bool> RepoWriter::has_file(const ObjectId& id, std::uint64_t size) {
  struct stat info {};
  const std::string path = object_path(id);
  if (::fstatat(state_->directory.get(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return false;
    return fail_errno(errno, path);
  }
  if (S_ISLNK(info.st_mode) || (S_ISREG(info.st_mode) && static_cast<std::uint64_t>(info.st_size) == size))
    return true;
  if (::unlinkat(state_->directory.get(), path.c_str(), 0) != 0)
    return fail_errno(errno, "removing damaged " + path);
  return false;
}

Result<void> RepoWriter::write_file(const ObjectId& id, const Attributes& attributes,
                                    std::span<const std::byte> content) {
  const std::string header = object_header(attributes, "");
  const Object<GInputStream> stream(
      g_memory_input_stream_new_from_data(header.data(), static_cast<gssize>(header.size()), nullptr));
  if (!content.empty()) {
    g_memory_input_stream_add_data(G_MEMORY_INPUT_STREAM(stream.get()), content.data(),
                                   static_cast<gssize>(content.size()), nullptr);
  }
  return state_->write(id, stream.get(), header.size() + content.size());
}

Result<void> RepoWriter::write_file(const ObjectId& id, const Attributes& attributes, int fd,
                                    std::uint64_t size) {
  if (::lseek(fd, 0, SEEK_SET) != 0) return fail_errno(errno, "rewinding a temporary file");
  const Object<GInputStream> input(g_unix_input_stream_new(fd, FALSE));
  const Variant xattrs = xattr_variant(attributes.xattrs);
  const Object<GFileInfo> info = file_info(attributes, size);
  GError* error = nullptr;
  GInputStream* stream = nullptr;
  guint64 length = 0;
  if (!ostree_raw_file_to_content_stream(input.get(), info.get(), xattrs.get(), &stream, &length, nullptr,
                                         &error)) {
    return fail_gerror(error, "preparing a file for the repository");
  }
  const Object<GInputStream> owner(stream);
  return state_->write(id, stream, length);
}

Result<void> RepoWriter::write_symlink(const ObjectId& id, const Attributes& attributes,
                                       const std::string& target) {
  const std::string header = object_header(attributes, target);
  const Object<GInputStream> stream(
      g_memory_input_stream_new_from_data(header.data(), static_cast<gssize>(header.size()), nullptr));
  return state_->write(id, stream.get(), header.size());
}

Result<ObjectId> RepoWriter::write_directory_attributes(const Attributes& attributes) {
  const Variant xattrs = xattr_variant(attributes.xattrs);
  const Object<GFileInfo> info = file_info(attributes, 0);
  const Variant variant(g_variant_ref_sink(ostree_create_directory_metadata(info.get(), xattrs.get())));
  return state_->write_metadata(OSTREE_OBJECT_TYPE_DIR_META, variant.get());
}

Result<ObjectId> RepoWriter::write_directory(DirectoryListing listing) {
  sort_by_name(listing.leaves);
  sort_by_name(listing.directories);
  GVariantBuilder files, dirs;
  g_variant_builder_init(&files, G_VARIANT_TYPE("a(say)"));
  g_variant_builder_init(&dirs, G_VARIANT_TYPE("a(sayay)"));
  for (const auto& [name, id] : listing.leaves) {
    g_variant_builder_add(&files, "(s@ay)", name.c_str(), id_variant(id));
  }
  for (const auto& [name, ids] : listing.directories) {
    g_variant_builder_add(&dirs, "(s@ay@ay)", name.c_str(), id_variant(ids.tree), id_variant(ids.meta));
  }
  const Variant variant(g_variant_ref_sink(
      g_variant_new("(@a(say)@a(sayay))", g_variant_builder_end(&files), g_variant_builder_end(&dirs))));
  return state_->write_metadata(OSTREE_OBJECT_TYPE_DIR_TREE, variant.get());
}

Result<std::string> RepoWriter::write_commit(const CommitSpec& spec) {
  GVariantBuilder metadata;
  g_variant_builder_init(&metadata, G_VARIANT_TYPE("a{sv}"));
  for (const auto& [key, value] : spec.metadata) {
    g_variant_builder_add(&metadata, "{sv}", key.c_str(), g_variant_new_string(value.c_str()));
  }
  for (const auto& [key, values] : spec.metadata_lists) {
    std::vector<const char*> items;
    for (const std::string& value : values) items.push_back(value.c_str());
    g_variant_builder_add(&metadata, "{sv}", key.c_str(),
                          g_variant_new_strv(items.data(), static_cast<gssize>(items.size())));
  }
  // OSTREE_COMMIT_GVARIANT_FORMAT; ostree_repo_write_commit_with_time wants an OstreeRepoFile, which would
  // have to load what was just written.
  const Variant variant(g_variant_ref_sink(
      g_variant_new("(@a{sv}@ay@a(say)sst@ay@ay)", g_variant_builder_end(&metadata),
                    g_variant_new_array(G_VARIANT_TYPE_BYTE, nullptr, 0),
                    g_variant_new_array(G_VARIANT_TYPE("(say)"), nullptr, 0), spec.subject.c_str(), "",
                    GUINT64_TO_BE(static_cast<guint64>(spec.timestamp)), id_variant(spec.root.tree),
                    id_variant(spec.root.meta))));
  const ObjectId id = TRY(state_->write_metadata(OSTREE_OBJECT_TYPE_COMMIT, variant.get()));
  return id.hex();
}

void RepoWriter::set_ref(const std::string& ref, const std::string& commit) {
  ostree_repo_transaction_set_ref(state_->repo.get(), nullptr, ref.c_str(), commit.c_str());
}

Result<Fd> RepoWriter::temporary() const {
  Fd fd(::openat(state_->directory.get(), "tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) return fail_errno(errno, "creating a temporary file in the repository");
  return fd;
}

Result<void> RepoWriter::commit() {
  GError* error = nullptr;
  if (!ostree_repo_commit_transaction(state_->repo.get(), nullptr, nullptr, &error)) {
    return fail_gerror(error, "committing to the repository");
  }
  state_->open = false;
  return state_->prepare();
}

}  // namespace rasupd
