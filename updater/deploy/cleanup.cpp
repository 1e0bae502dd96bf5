#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files.hpp"
#include "base/text.hpp"
#include "bootloader/entry_files.hpp"
#include "deploy/locked_host_body.hpp"

namespace rasupd {
namespace {

/// A boot entry has some hundred bytes.
constexpr std::size_t kMaxEntryBytes = 64u << 10;

/// Another stateroot is another system; what it needs is not ours to judge.
bool is_kept(const HostState& state, std::size_t index) {
  const Deployment& deployment = state.deployments[index];
  return deployment.staged || deployment.pinned || state.booted == index || state.first == index ||
         state.rollback == index ||
         (!state.good.empty() && deployment.directory.ends_with("/" + state.good)) || deployment.stateroot != state.current()->stateroot;
}

/// Deployment directories that no entry names: left by an interrupted deployment or dropped at the last one.
Result<std::vector<Deployment>> orphans(const LockedHost::Body& body) {
  std::vector<Deployment> out;
  for (const std::string& directory : TRY(list_deployment_directories(body.world.sysroot))) {
    const bool named = std::any_of(body.state.deployments.begin(), body.state.deployments.end(),
                                   [&](const Deployment& known) { return known.directory == directory; });
    if (named) continue;
    if (auto deployment = TRY(read_deployment(body.world, directory))) out.push_back(std::move(*deployment));
  }
  return out;
}

/// Kernels in /boot that no boot entry of anybody names. libostree 2025.2 leaves the first one behind that was dropped
/// by a switch of another process; /boot is small.
Result<void> drop_unnamed_kernels(const LockedHost::Body& body) {
  std::string entries;
  const std::string folder = body.path("boot/loader/entries");
  for (const std::string& file : TRY(list_directory(folder))) {
    const auto text = TRY(read_file(path_join(folder, file), kMaxEntryBytes, Kind::Boot));
    if (text) entries += *text + "\n";
  }
  const std::string kernels = body.path("boot/ostree");
  for (const std::string& name : TRY(list_directory(kernels))) {
    if (!boot::is_kernel_directory(name) || entries.find("/ostree/" + name + "/") != std::string::npos) continue;
    std::error_code error;
    std::filesystem::remove_all(path_join(kernels, name), error);
    if (error) return fail_errno(error.value(), "removing " + path_join(kernels, name));
  }
  return {};
}

}  // namespace

Result<std::vector<Deployment>> clean_deployments(LockedHost& host, bool dry_run) {
  LockedHost::Body& body = host.body();
  TRY(body.reload());
  if (!body.state.problems.empty()) {
    return fail(Kind::Boot, body.state.problems.front(), "nothing is removed while this is so");
  }
  std::vector<Deployment> removed = TRY(orphans(body));
  if (!body.state.first)
    return removed.empty() ? Result<std::vector<Deployment>>(std::move(removed))
                           : fail(Kind::Boot, "no boot entries", "nothing is removed");
  std::vector<std::string> kept;
  bool dropping = false;
  for (std::size_t i = 0; i < body.state.deployments.size(); ++i) {
    const Deployment& deployment = body.state.deployments[i];
    if (is_kept(body.state, i)) {
      kept.push_back(deployment.directory);
    } else {
      removed.push_back(deployment);
      dropping = true;
    }
  }
  if (dry_run) return removed;
  if (dropping) TRY(switch_entries(body, kept));
  if (!TRY(body.bootloader->in_step())) {
    // What it names instead lies in the boot.N that would go.
    return fail(Kind::Boot, "the bootloader does not read what the boot entries say yet; nothing was removed",
                "`rasupd health check` settles it, and runs at every boot");
  }
  TRY(body.sysroot.clean());
  TRY(drop_unnamed_kernels(body));
  TRY(body.reload());
  return removed;
}

Result<void> set_pinned(LockedHost& host, std::size_t index, bool pinned) {
  LockedHost::Body& body = host.body();
  if (index >= body.state.deployments.size()) {
    return fail(Kind::Usage, fmt::format("there is no deployment {}", index),
                fmt::format("`status` lists 0 to {}", body.state.deployments.size() - 1));
  }
  const Deployment& deployment = body.state.deployments[index];
  if (deployment.staged)
    return fail(Kind::Usage, "a staged deployment cannot be pinned", "it can after the reboot");
  if (deployment.pinned == pinned) return {};
  TRY(body.sysroot.set_pinned(deployment.directory, pinned));
  return body.reload();
}

}  // namespace rasupd
