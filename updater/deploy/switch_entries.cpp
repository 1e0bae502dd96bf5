#include <fmt/format.h>

#include "base/failpoint.hpp"
#include "deploy/locked_host_body.hpp"

namespace rasupd {
namespace {

std::vector<std::string> without_staged(const HostState& state) {
  std::vector<std::string> out;
  for (const Deployment& deployment : state.deployments) {
    if (!deployment.staged) out.push_back(deployment.directory);
  }
  return out;
}

}  // namespace

Result<void> refuse_without_boot(const HostState& state) {
  if (state.first || state.problems.empty()) return {};
  return fail(Kind::Boot, state.problems.front(), "mount /boot and try again; nothing was changed");
}

Result<std::vector<std::string>> switch_entries(LockedHost::Body& body, const std::vector<std::string>& directories) {
  const boot::Menu before = TRY(body.bootloader->read());
  const std::vector<std::string> former = without_staged(body.state);
  TRY(body.sysroot.write(directories));
  std::vector<std::string> warnings = body.bootloader->after_switch(before);
  auto verified = directories.empty() ? Result<void>() : body.bootloader->verify(directories.front());
  if (!verified) {
    Error error = std::move(verified.error());
    const auto restored = former.empty() ? Result<void>() : body.sysroot.write(former);
    error.message += restored ? "; the former boot order was restored"
                              : "; the former boot order could not be restored: " + restored.error().message;
    error.changed = !restored;
    return fail(std::move(error));
  }
  TRY(body.reload());
  return warnings;
}

}  // namespace rasupd
