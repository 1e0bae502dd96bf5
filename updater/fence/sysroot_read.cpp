// Single files of an ostree system, read without libostree's sysroot object: no lock, nothing created.

#include <fmt/format.h>
#include <glib.h>
#include <ostree.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/files.hpp"
#include "base/handle.hpp"
#include "base/text.hpp"
#include "fence/sysroot.hpp"

namespace rasupd {
namespace {

using VariantHandle = std::unique_ptr<GVariant, Deleter<g_variant_unref>>;

// The file holds kernel arguments and a few names.
constexpr std::size_t kMaxRunBytes = 1u << 20;
// A commit carries the image's manifest and config, 4 MiB each at most, and its own fields; libostree caps
// metadata objects at 128 MiB (OSTREE_MAX_METADATA_SIZE).
constexpr std::size_t kMaxCommitBytes = 128u << 20;

/// Untrusted serialized data: GVariant checks it on access, and hands out defaults for what is malformed.
VariantHandle to_variant(const std::string& bytes, const char* type) {
  GBytes* copy = g_bytes_new(bytes.data(), bytes.size());
  GVariant* variant = g_variant_new_from_bytes(G_VARIANT_TYPE(type), copy, FALSE);
  g_bytes_unref(copy);
  return VariantHandle(g_variant_ref_sink(variant));
}

std::string string_member(GVariant* dict, const char* key) {
  const char* value = nullptr;
  return g_variant_lookup(dict, key, "&s", &value) ? value : "";
}

}  // namespace

Result<std::optional<StagedDeployment>> read_staged(const std::string& run) {
  const std::string path = path_join(run, "staged-deployment");
  const auto bytes = TRY(read_file(path, kMaxRunBytes, Kind::Boot));
  if (!bytes) return std::optional<StagedDeployment>{};
  const auto bad = [&](const char* why) {
    return fail(Kind::Boot, fmt::format("{}: {}", path, why),
                "remove it; the staged deployment can be staged again");
  };
  const VariantHandle data = to_variant(*bytes, "a{sv}");
  const VariantHandle target(g_variant_lookup_value(data.get(), "target", G_VARIANT_TYPE("a{sv}")));
  if (!target) return bad("names no deployment");
  StagedDeployment staged;
  staged.stateroot = string_member(target.get(), "osname");
  staged.boot_checksum = string_member(target.get(), "bootcsum");
  const auto parts = split(string_member(target.get(), "name"), '.');  // CHECKSUM.SERIAL
  if (parts.size() != 2 || parts[0].size() != 64 || !from_hex(parts[0]) || staged.stateroot.empty()) {
    return bad("malformed");
  }
  staged.checksum = parts[0];
  staged.serial = static_cast<int>(std::strtol(parts[1].c_str(), nullptr, 10));
  const VariantHandle kargs(g_variant_lookup_value(data.get(), "kargs", G_VARIANT_TYPE("as")));
  for (gsize i = 0; kargs && i < g_variant_n_children(kargs.get()); ++i) {
    const VariantHandle word(g_variant_get_child_value(kargs.get(), i));
    staged.kargs.emplace_back(g_variant_get_string(word.get(), nullptr));
  }
  gboolean locked = FALSE;  // the key since 2023.8, the file before
  g_variant_lookup(data.get(), "locked", "b", &locked);
  staged.locked = locked || exists(path_join(run, "staged-deployment-locked"));
  return std::optional(std::move(staged));
}

Result<std::optional<RootIdentity>> booted_root(const std::string& sysroot) {
  const auto marker = TRY(read_file("/run/ostree-booted", kMaxRunBytes, Kind::Boot));
  if (!marker) return std::optional<RootIdentity>{};
  struct stat root {
  }, ours{};
  if (::stat("/", &root) != 0 || ::stat(sysroot.c_str(), &ours) != 0) return std::optional<RootIdentity>{};
  if (root.st_dev != ours.st_dev || root.st_ino != ours.st_ino) return std::optional<RootIdentity>{};
  RootIdentity identity{root.st_dev, root.st_ino};
  if (!marker->empty()) {
    // On a composefs root the mounted root is not the deployment's directory; ostree-prepare-root says which
    // it is.
    const VariantHandle data = to_variant(*marker, "a{sv}");
    const VariantHandle backing(
        g_variant_lookup_value(data.get(), "backing-root-device-inode", G_VARIANT_TYPE("(tt)")));
    guint64 device = 0, inode = 0;
    if (backing) {
      g_variant_get(backing.get(), "(tt)", &device, &inode);
      identity = {device, inode};
    }
  }
  return std::optional(identity);
}

Result<std::optional<CommitFacts>> read_commit_facts(const std::string& repo, const std::string& commit) {
  if (commit.size() != 64 || !from_hex(commit)) return std::optional<CommitFacts>{};
  const std::string name = fmt::format("objects/{}/{}.commit", commit.substr(0, 2), commit.substr(2));
  const auto bytes = TRY(read_file(path_join(repo, name), kMaxCommitBytes));
  if (!bytes) return std::optional<CommitFacts>{};
  const VariantHandle data = to_variant(*bytes, "(a{sv}aya(say)sstayay)");  // OSTREE_COMMIT_GVARIANT_FORMAT
  const VariantHandle metadata(g_variant_get_child_value(data.get(), 0));
  CommitFacts facts;
  facts.manifest_digest = string_member(metadata.get(), "ostree.manifest-digest");
  facts.manifest = string_member(metadata.get(), "ostree.manifest");
  facts.config = string_member(metadata.get(), "ostree.container.image-config");
  facts.version = string_member(metadata.get(), "version");
  facts.timestamp = static_cast<std::int64_t>(ostree_commit_get_timestamp(data.get()));
  return std::optional(std::move(facts));
}

}  // namespace rasupd
