// The menu before it is written. libostree turns its entries in one rename and offers no moment between writing
// them and that rename, so what a bootloader reads beside them has to be foretold. switch_entries() compares the
// prophecy with what came.

#include <fmt/format.h>

#include <map>

#include "base/text.hpp"
#include "bootloader/entry_files.hpp"
#include "bootloader/kernel.hpp"
#include "deploy/image_facts.hpp"
#include "deploy/locked_host_body.hpp"

namespace rasupd {
namespace {

std::string title_of(const Deployment& deployment) {
  const std::string what = deployment.image ? deployment.image->str() : deployment.checksum.substr(0, 12);
  return printable(deployment.version.empty() ? what : what + " " + deployment.version);
}

Result<Deployment> described(const LockedHost::Body& body, const std::string& directory) {
  for (const Deployment& known : body.state.deployments) {
    if (known.directory == directory) return known;
  }
  auto fresh = TRY(read_deployment(body.world, directory));
  if (!fresh) return fail(Kind::Bug, "no such deployment: " + directory);
  return std::move(*fresh);
}

}  // namespace

Result<boot::Next> next_menu(const LockedHost::Body& body, const std::vector<std::string>& directories) {
  boot::Next next;
  // A sysroot without entries starts with boot version 0, so its first menu is in loader.1 (libostree,
  // write_deployments_bootswap).
  const auto current = boot::current_boot_version(body.world.sysroot);
  next.boot_version = current && *current == 1 ? 0 : 1;
  std::map<std::string, unsigned> serials;  // per boot checksum, in boot order (assign_bootserials)
  for (const std::string& directory : directories) {
    const Deployment deployment = TRY(described(body, directory));
    if (deployment.staged) continue;  // has no entry before it is finalized
    boot::Entry entry;
    entry.stateroot = deployment.stateroot;
    entry.boot_checksum = TRY(body.sysroot.boot_checksum(directory));
    entry.ostree = fmt::format("/ostree/boot.{}/{}/{}/{}", next.boot_version, entry.stateroot, entry.boot_checksum,
                               serials[entry.boot_checksum]++);
    entry.options = TRY(body.sysroot.entry_options(directory, entry.ostree));
    entry.deployment = directory.substr(directory.rfind('/') + 1);
    entry.title = title_of(deployment);
    const auto files = TRY(boot::find_kernel_files(body.path(directory)));
    if (files) {
      const std::string folder = fmt::format("/ostree/{}-{}/", entry.stateroot, entry.boot_checksum);
      entry.kernel = folder + "vmlinuz-" + files->version;
      if (!files->initramfs.empty()) entry.initrd = fmt::format("{}initramfs-{}.img", folder, files->version);
    }
    next.entries.push_back(std::move(entry));
  }
  return next;
}

}  // namespace rasupd
