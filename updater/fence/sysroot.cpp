#include "fence/sysroot.hpp"

#include <fmt/format.h>
#include <gio/gio.h>
#include <glib.h>
#include <ostree.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/handle.hpp"
#include "base/text.hpp"
#include "fence/sysroot_body.hpp"

namespace rasupd {
namespace {

using KeyFileHandle = std::unique_ptr<GKeyFile, Deleter<g_key_file_unref>>;
using FileHandle = std::unique_ptr<GFile, Unref>;

/// Keys of the repository's configuration that a new sysroot gets.
Result<void> configure(OstreeRepo* repo) {
  const KeyFileHandle config(ostree_repo_copy_config(repo));
  // libostree must not run this host's grub-mkconfig for another disk; menus are a backend's business.
  g_key_file_set_string(config.get(), "sysroot", "bootloader", "none");
  // libostree before 2023.6 knows no prepare-root.conf and takes the read-only /sysroot from here.
  g_key_file_set_boolean(config.get(), "sysroot", "readonly", TRUE);
  GError* error = nullptr;
  if (!ostree_repo_write_config(repo, config.get(), &error))
    return fail_gerror(error, "configuring the repository");
  return {};
}

/// libostree before 2024.3 fills a new var with empty directories, later ones leave it empty. Empty in both,
/// so that a first installation unpacks into the same place; tmpfiles.d of the image makes what it needs.
void empty_new_var(const std::string& var) {
  for (const char* name : {"tmp", "lib", "log", "lock", "run"}) {
    const std::string path = path_join(var, name);
    if (::rmdir(path.c_str()) != 0) ::unlink(path.c_str());  // run and lock are symlinks
  }
}

/// libostree before 2023.7 leaves the lock when what it locked is dropped; it would hold the next one back.
void drop_lock_file() {
  ::unlink("/run/ostree/staged-deployment-locked");
}

}  // namespace

void unref_object(void* object) noexcept {
  g_object_unref(object);
}

Sysroot::Body::~Body() {
  if (locked) ostree_sysroot_unlock(sysroot.get());
}

std::string Sysroot::Body::directory_of(OstreeDeployment* deployment) const {
  return fmt::format("ostree/deploy/{}/deploy/{}.{}", ostree_deployment_get_osname(deployment),
                     ostree_deployment_get_csum(deployment), ostree_deployment_get_deployserial(deployment));
}

OstreeDeployment* Sysroot::Body::find(const std::string& directory) const {
  const std::unique_ptr<GPtrArray, Deleter<g_ptr_array_unref>> list(
      ostree_sysroot_get_deployments(sysroot.get()));
  for (guint i = 0; i < list->len; ++i) {
    auto* deployment = static_cast<OstreeDeployment*>(list->pdata[i]);
    if (directory_of(deployment) == directory) return deployment;  // the sysroot keeps its own reference
  }
  for (const auto& deployment : fresh) {
    if (directory_of(deployment.get()) == directory) return deployment.get();
  }
  return nullptr;
}

std::vector<std::unique_ptr<OstreeDeployment, Unref>> Sysroot::Body::all() const {
  std::vector<std::unique_ptr<OstreeDeployment, Unref>> out;
  const auto add = [&out](OstreeDeployment* deployment) {
    out.emplace_back(static_cast<OstreeDeployment*>(g_object_ref(deployment)));
  };
  const std::unique_ptr<GPtrArray, Deleter<g_ptr_array_unref>> list(
      ostree_sysroot_get_deployments(sysroot.get()));
  for (guint i = 0; i < list->len; ++i) add(static_cast<OstreeDeployment*>(list->pdata[i]));
  for (const auto& deployment : fresh) add(deployment.get());
  return out;
}

Sysroot::Sysroot(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Sysroot::~Sysroot() = default;
Sysroot::Sysroot(Sysroot&&) noexcept = default;
Sysroot& Sysroot::operator=(Sysroot&&) noexcept = default;

Result<void> Sysroot::initialize(const std::string& path, const std::string& stateroot) {
  const bool had_repo = exists(path_join(path, "ostree/repo/config"));
  TRY(make_directories(path));
  const FileHandle file(g_file_new_for_path(path.c_str()));
  const std::unique_ptr<OstreeSysroot, Unref> sysroot(ostree_sysroot_new(file.get()));
  GError* error = nullptr;
  if (!ostree_sysroot_ensure_initialized(sysroot.get(), nullptr, &error)) {
    return fail_gerror(error, "making an ostree sysroot in " + path);
  }
  if (!ostree_sysroot_load(sysroot.get(), nullptr, &error))
    return fail_gerror(error, "loading " + path, Kind::Boot);
  if (!had_repo) TRY(configure(ostree_sysroot_repo(sysroot.get())));
  TRY(make_directories(path_join(path, "boot")));
  const std::string root = path_join(path, "ostree/deploy/" + stateroot);
  if (exists(root)) return {};
  if (!ostree_sysroot_init_osname(sysroot.get(), stateroot.c_str(), nullptr, &error)) {
    return fail_gerror(error, "making stateroot " + stateroot);
  }
  empty_new_var(path_join(root, "var"));
  return {};
}

Result<Sysroot> Sysroot::lock(const std::string& path, bool running) {
  auto body = std::make_unique<Body>();
  body->path = path;
  const FileHandle file(g_file_new_for_path(path.c_str()));
  body->sysroot.reset(ostree_sysroot_new(file.get()));
  GError* error = nullptr;
  if (running && ::getuid() == 0 &&
      !ostree_sysroot_initialize_with_mount_namespace(body->sysroot.get(), nullptr, &error)) {
    return fail_gerror(error, "making /sysroot writable");
  }
  gboolean got = FALSE;
  if (!ostree_sysroot_try_lock(body->sysroot.get(), &got, &error))
    return fail_gerror(error, "locking " + path);
  if (!got)
    return fail(Kind::Busy, fmt::format("{}: another updater holds the lock", path), "try again later");
  body->locked = true;
  Sysroot sysroot(std::move(body));
  TRY(sysroot.reload());
  return sysroot;
}

Result<void> Sysroot::reload() {
  GError* error = nullptr;
  if (!ostree_sysroot_load(body_->sysroot.get(), nullptr, &error)) {
    return fail_gerror(error, "libostree cannot read the boot entries of " + body_->path, Kind::Boot);
  }
  body_->fresh.clear();
  return {};
}

std::vector<std::string> Sysroot::deployments() const {
  std::vector<std::string> out;
  const std::unique_ptr<GPtrArray, Deleter<g_ptr_array_unref>> list(
      ostree_sysroot_get_deployments(body_->sysroot.get()));
  for (guint i = 0; i < list->len; ++i) {
    out.push_back(body_->directory_of(static_cast<OstreeDeployment*>(list->pdata[i])));
  }
  return out;
}

Result<void> Sysroot::write(const std::vector<std::string>& directories) {
  std::optional<std::string> staged;
  if (auto* deployment = ostree_sysroot_get_staged_deployment(body_->sysroot.get())) {
    staged = body_->directory_of(deployment);
  }
  const std::unique_ptr<GPtrArray, Deleter<g_ptr_array_unref>> list(
      g_ptr_array_new_with_free_func(g_object_unref));
  for (const std::string& directory : directories) {
    OstreeDeployment* deployment = body_->find(directory);
    if (!deployment) return fail(Kind::Bug, "no such deployment: " + directory);
    g_ptr_array_add(list.get(), g_object_ref(deployment));
  }
  OstreeSysrootWriteDeploymentsOpts options{};
  options.do_postclean = FALSE;  // the old default must outlive the switch; see clean()
#if OSTREE_CHECK_VERSION(2023, 8)
  options.disable_auto_early_prune = TRUE;  // it would give up the rollback to make room; we refuse instead
#endif
  // What the list no longer holds afterwards can still be named by a write that restores the former order.
  auto former = body_->all();
  GError* error = nullptr;
  if (!ostree_sysroot_write_deployments_with_options(body_->sysroot.get(), list.get(), &options, nullptr,
                                                     &error)) {
    return fail_gerror(error, "writing the boot entries");
  }
  if (staged && (directories.empty() || directories.front() != *staged)) drop_lock_file();
  auto read = reload();
  body_->fresh = std::move(former);
  if (!read) read.error().changed = true;
  return read;
}

Result<void> Sysroot::set_pinned(const std::string& directory, bool pinned) {
  OstreeDeployment* deployment = body_->find(directory);
  if (!deployment) return fail(Kind::Bug, "no such deployment: " + directory);
  GError* error = nullptr;
  if (!ostree_sysroot_deployment_set_pinned(body_->sysroot.get(), deployment, pinned, &error)) {
    return fail_gerror(error, pinned ? "pinning" : "releasing");
  }
  return {};
}

Result<void> Sysroot::clean() {
  GError* error = nullptr;
  if (!ostree_sysroot_prepare_cleanup(body_->sysroot.get(), nullptr, &error)) {
    return fail_gerror(error, "removing old deployments");
  }
  return {};
}

}  // namespace rasupd
