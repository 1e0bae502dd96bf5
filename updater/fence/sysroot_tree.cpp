// Trees: checkout, deploy, stage.

#include <fcntl.h>
#include <fmt/format.h>
#include <gio/gio.h>
#include <glib.h>
#include <ostree.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/files.hpp"
#include "base/handle.hpp"
#include "fence/hash.hpp"
#include "fence/sysroot_body.hpp"

namespace rasupd {
namespace {

using KeyFileHandle = std::unique_ptr<GKeyFile, Deleter<g_key_file_unref>>;
using FileHandle = std::unique_ptr<GFile, Unref>;
using Strings = std::unique_ptr<char*, Deleter<g_strfreev>>;

/// The origin that a new deployment gets: a pin belongs to one deployment only.
Result<KeyFileHandle> parse_origin(const std::string& text) {
  KeyFileHandle origin(g_key_file_new());
  GError* error = nullptr;
  if (!g_key_file_load_from_data(origin.get(), text.data(), text.size(), G_KEY_FILE_KEEP_COMMENTS, &error)) {
    return fail_gerror(error, "origin of the new deployment");
  }
  ostree_deployment_origin_remove_transient_state(origin.get());
  return origin;
}

Strings to_strv(const std::vector<std::string>& words) {
  char** out = g_new0(char*, words.size() + 1);
  for (std::size_t i = 0; i < words.size(); ++i) out[i] = g_strdup(words[i].c_str());
  return Strings(out);
}

#if !OSTREE_CHECK_VERSION(2023, 8)
// Before 2023.8 the lock is a file that libostree's finalizer looks for; the path is its ABI with rpm-ostree.
constexpr const char* kLockFile = "/run/ostree/staged-deployment-locked";

bool has_lock_file() {
  return ::access(kLockFile, F_OK) == 0;
}

Result<void> set_lock_file(bool locked) {
  if (!locked) {
    if (::unlink(kLockFile) != 0 && errno != ENOENT) return fail_errno(errno, kLockFile);
    return {};
  }
  const Fd fd(::open(kLockFile, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return fail_errno(errno, kLockFile);
  return {};
}
#endif

/// Adds the bytes of `path` in `root`; false when it is not there.
Result<bool> hash_file(GFile* root, const std::string& path, Sha256& hash) {
  const FileHandle file(g_file_resolve_relative_path(root, path.c_str()));
  GError* error = nullptr;
  const std::unique_ptr<GFileInputStream, Unref> stream(g_file_read(file.get(), nullptr, &error));
  if (!stream) {
    const bool missing = g_error_matches(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND);
    auto failed = fail_gerror(error, "reading " + path);
    if (missing) return false;
    return failed;
  }
  std::array<std::byte, 65536> buffer;
  for (;;) {
    const gssize n =
        g_input_stream_read(G_INPUT_STREAM(stream.get()), buffer.data(), buffer.size(), nullptr, &error);
    if (n < 0) return fail_gerror(error, "reading " + path);
    if (n == 0) return true;
    hash.update(std::span(buffer).first(static_cast<std::size_t>(n)));
  }
}

/// Names of the children of `path` in `root`, sorted; empty when it is not there.
std::vector<std::string> children(GFile* root, const char* path) {
  std::vector<std::string> names;
  const FileHandle directory(g_file_resolve_relative_path(root, path));
  const std::unique_ptr<GFileEnumerator, Unref> list(g_file_enumerate_children(
      directory.get(), "standard::name", G_FILE_QUERY_INFO_NOFOLLOW_SYMLINKS, nullptr, nullptr));
  if (!list) return names;
  while (GFileInfo* info = g_file_enumerator_next_file(list.get(), nullptr, nullptr)) {
    names.emplace_back(g_file_info_get_name(info));
    g_object_unref(info);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool has(GFile* root, const std::string& path) {
  const FileHandle file(g_file_resolve_relative_path(root, path.c_str()));
  return g_file_query_exists(file.get(), nullptr);
}

}  // namespace

Result<std::string> Sysroot::deploy(const TreeRequest& request) {
  const KeyFileHandle origin = TRY(parse_origin(request.origin));
  const Strings kargs = to_strv(request.kargs);
  OstreeSysrootDeployTreeOpts options{};
  options.override_kernel_argv = kargs.get();
  OstreeDeployment* made = nullptr;
  GError* error = nullptr;
  // No merge deployment: /etc stays the image's, the merge is ours (ADR "own /etc merge").
  if (!ostree_sysroot_deploy_tree_with_options(body_->sysroot.get(), request.stateroot.c_str(),
                                               request.commit.c_str(), origin.get(), nullptr, &options, &made,
                                               nullptr, &error)) {
    return fail_gerror(error, "deploying " + request.commit.substr(0, 12));
  }
  body_->fresh.emplace_back(made);
  return body_->directory_of(made);
}

Result<std::string> Sysroot::boot_checksum(const std::string& directory) const {
  OstreeDeployment* deployment = body_->find(directory);
  if (!deployment) return fail(Kind::Bug, "no such deployment: " + directory);
  const char* checksum = ostree_deployment_get_bootcsum(deployment);
  return std::string(checksum ? checksum : "");
}

Result<std::string> Sysroot::entry_options(const std::string& directory, const std::string& path) const {
  OstreeDeployment* deployment = body_->find(directory);
  if (!deployment) return fail(Kind::Bug, "no such deployment: " + directory);
  // libostree's own steps in install_deployment_kernel().
  OstreeBootconfigParser* config = ostree_deployment_get_bootconfig(deployment);
  const char* options = config ? ostree_bootconfig_parser_get(config, "options") : nullptr;
  const std::unique_ptr<OstreeKernelArgs, Deleter<ostree_kernel_args_free>> arguments(
      ostree_kernel_args_from_string(options ? options : ""));
  ostree_kernel_args_replace_take(arguments.get(), g_strdup(("ostree=" + path).c_str()));
  const std::unique_ptr<char, Deleter<g_free>> text(ostree_kernel_args_to_string(arguments.get()));
  return std::string(text.get());
}

Result<void> Sysroot::set_mutable(const std::string& directory, bool writable) {
  OstreeDeployment* deployment = body_->find(directory);
  if (!deployment) return fail(Kind::Bug, "no such deployment: " + directory);
  GError* error = nullptr;
  if (!ostree_sysroot_deployment_set_mutable(body_->sysroot.get(), deployment, writable, nullptr, &error)) {
    return fail_gerror(error, "the immutable bit of " + directory);
  }
  return {};
}

Result<void> Sysroot::stage(const TreeRequest& request, bool locked) {
  const KeyFileHandle origin = TRY(parse_origin(request.origin));
  const Strings kargs = to_strv(request.kargs);
  OstreeSysrootDeployTreeOpts options{};
  options.override_kernel_argv = kargs.get();
#if OSTREE_CHECK_VERSION(2023, 8)
  options.locked = locked;
#else
  const bool was_locked = has_lock_file();
  if (locked) TRY(set_lock_file(true));  // before, so that there is no moment without it
#endif
  OstreeDeployment* made = nullptr;
  GError* error = nullptr;
  if (!ostree_sysroot_stage_tree_with_options(
          body_->sysroot.get(), request.stateroot.c_str(), request.commit.c_str(), origin.get(),
          ostree_sysroot_get_booted_deployment(body_->sysroot.get()), &options, &made, nullptr, &error)) {
#if !OSTREE_CHECK_VERSION(2023, 8)
    // An earlier stage must not stay held back because a new one failed.
    if (locked && !was_locked) (void)set_lock_file(false);
#endif
    return fail_gerror(error, "staging " + request.commit.substr(0, 12));
  }
  g_object_unref(made);
  Result<void> after;
#if !OSTREE_CHECK_VERSION(2023, 8)
  after = set_lock_file(locked);
#endif
  if (after) after = reload();
  if (!after) after.error().changed = true;  // it is staged all the same
  return after;
}

Result<void> Sysroot::set_staged_locked(bool locked) {
  OstreeDeployment* staged = ostree_sysroot_get_staged_deployment(body_->sysroot.get());
  if (!staged) return fail(Kind::Boot, "nothing is staged");
#if OSTREE_CHECK_VERSION(2023, 8)
  if (static_cast<bool>(ostree_deployment_is_finalization_locked(staged)) == locked) return {};
  GError* error = nullptr;
  if (!ostree_sysroot_change_finalization(body_->sysroot.get(), staged, &error)) {
    return fail_gerror(error, "the lock of the staged deployment");
  }
  return reload();
#else
  return set_lock_file(locked);
#endif
}

Result<bool> Sysroot::checkout(const std::string& commit, const std::string& subpath,
                               const std::string& destination) {
  OstreeRepo* repo = ostree_sysroot_repo(body_->sysroot.get());
  GFile* root = nullptr;
  GError* error = nullptr;
  if (!ostree_repo_read_commit(repo, commit.c_str(), &root, nullptr, nullptr, &error)) {
    return fail_gerror(error, "reading commit " + commit.substr(0, 12));
  }
  const FileHandle owned(root);
  if (!has(root, subpath)) return false;
  const std::string inside = "/" + subpath;
  OstreeRepoCheckoutAtOptions options{};
  options.mode = OSTREE_REPO_CHECKOUT_MODE_NONE;
  options.subpath = inside.c_str();
  if (!ostree_repo_checkout_at(repo, &options, AT_FDCWD, destination.c_str(), commit.c_str(), nullptr,
                               &error)) {
    return fail_gerror(error, fmt::format("reading {} of {}", subpath, commit.substr(0, 12)));
  }
  return true;
}

Result<std::optional<std::string>> Sysroot::kernel_checksum(const std::string& commit) {
  GFile* root = nullptr;
  GError* error = nullptr;
  if (!ostree_repo_read_commit(ostree_sysroot_repo(body_->sysroot.get()), commit.c_str(), &root, nullptr,
                               nullptr, &error)) {
    return fail_gerror(error, "reading commit " + commit.substr(0, 12));
  }
  const FileHandle owned(root);
  for (const std::string& version : children(root, "usr/lib/modules")) {
    const std::string directory = "usr/lib/modules/" + version;
    Sha256 hash;
    if (!TRY(hash_file(root, directory + "/vmlinuz", hash))) continue;
    // libostree's checksum takes device trees in as well; those we do not foresee.
    if (has(root, directory + "/dtb") || has(root, directory + "/devicetree")) break;
    TRY(hash_file(root, directory + "/initramfs.img", hash));
    return std::optional(hash.finish_hex());
  }
  return std::optional<std::string>{};
}

}  // namespace rasupd
