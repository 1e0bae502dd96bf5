#pragma once
// Import: verified manifest and config in, one ostree commit out (docs/life-of-an-update.md, steps 7, 9, 10).
// Layers stream from the source through digest, decompression and diff_id into objects; only what was verified
// whole gets a layer ref. Layers are merged by our own in-memory overlay; nothing is ever checked out.
// On any error or stop, the repository holds nothing new but verified layers (and loose objects that the
// next prune takes).

#include <cstdint>
#include <string>
#include <vector>

#include "base/world.hpp"
#include "fence/repo.hpp"
#include "image/manifest.hpp"
#include "image/reference.hpp"

namespace rasupd {

class Source;

struct LayerPlan {
  Descriptor layer;
  Digest diff_id;
  bool present = false;  ///< a verified layer ref exists, by blob digest or by diff_id
  std::string commit;    ///< the layer's commit when present
};
struct ImportPlan {
  std::vector<LayerPlan> layers;
  std::size_t present = 0, needed = 0;
  std::uint64_t bytes_present = 0, bytes_needed = 0;  ///< compressed, from the descriptors
};
/// Reads refs only; writes nothing. `layers already present: N; layers needed: M (SIZE)`.
Result<ImportPlan> plan_import(const Repo& repo, const Manifest& manifest, const ImageConfig& config);

/// Error NoSpace naming file system, needed and free bytes when the missing layers (expanded, estimated) do
/// not fit beside `reserve`. `repo_path` is the directory whose file system is asked.
Result<void> check_space(const ImportPlan& plan, const std::string& repo_path, std::uint64_t reserve);

/// What all layers of an image take expanded, estimated as check_space() does.
std::uint64_t expanded_size(const Manifest& manifest);

struct ImageDocuments {
  Reference reference;        ///< names the image ref
  Digest manifest_digest;     ///< per-arch
  std::string manifest_bytes; ///< as received: commit metadata `ostree.manifest`
  std::string config_bytes;   ///< as received: commit metadata `ostree.container.image-config`
  Manifest manifest;
  ImageConfig config;
};
struct ImportOptions {
  unsigned parallel = 2;
};
struct Imported {
  std::string commit;
  std::uint64_t entries_dropped = 0;  ///< children of run, tmp, proc, sys, dev
};
/// Imports what is missing, merges and commits; sets the layer refs and the image ref. An image whose merged
/// commit already exists (same manifest digest under the image ref or a given commit) is returned as it is.
/// Errors: Untrusted (digest, size, diff_id, hostile entry), Unsuitable (entries an ostree commit cannot
/// hold, not bootable: see check_bootable), NoSpace, Offline, Cancelled.
Result<Imported> import_image(const World& world, Repo& repo, Source& source, const ImageDocuments& image,
                              const ImportPlan& plan, const ImportOptions& options);

/// R5: label `containers.bootc` or `ostree.bootable`. Needs only the config. Error Unsuitable.
Result<void> check_bootable_label(const ImageConfig& config);
/// R5 on the commit: exactly one /usr/lib/modules/*/vmlinuz with initramfs.img beside it, neither empty; /boot
/// empty or absent; /sysroot a directory; not both /etc and /usr/etc. Error Unsuitable naming the rule.
Result<void> check_bootable(const Repo& repo, const std::string& commit);
/// The version of the kernel that check_bootable() found, and the bytes of kernel plus initramfs.
struct KernelInfo {
  std::string version;
  std::uint64_t bytes = 0;
};
Result<KernelInfo> find_kernel(const Repo& repo, const std::string& commit);

/// Unpacks the commit's /var into `var_directory` (absolute, must be empty or missing), for first
/// installations only (R38). Keeps owner, mode and xattrs. Returns whether there was anything.
Result<bool> unpack_var(const Repo& repo, const std::string& commit, const std::string& var_directory);

struct StoredImage {
  std::string ref_key;  ///< "docker://host/repo:tag"
  std::string commit, manifest_digest;
  std::uint64_t layers = 0, bytes = 0;  ///< compressed sizes from the stored manifest
};
Result<std::vector<StoredImage>> list_images(const Repo& repo);

struct Pruned {
  std::size_t images = 0, layers = 0, objects = 0;
  std::uint64_t bytes = 0;
};
/// Removes image refs whose commit is not in `kept_commits`, layer refs no kept commit's manifest names, then
/// unreferenced objects. Keeps on doubt: a kept commit whose manifest cannot be read keeps every layer.
/// `dry_run` only counts refs.
Result<Pruned> prune_images(Repo& repo, const std::vector<std::string>& kept_commits, bool dry_run);

/// ostree-ext's escaping of ref names: [A-Za-z0-9._/-] stay except that "_" and "//" and others become _XX_ (hex); ":" → "_3A_".
std::string escape_ref(std::string_view text);
std::string unescape_ref(std::string_view text);

}  // namespace rasupd
