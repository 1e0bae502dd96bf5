#include "base/failpoint.hpp"
#include "deploy/locked_host_body.hpp"

namespace rasupd {
namespace {

/// The staged deployment's directory, empty when nothing is staged.
std::string staged_directory(const HostState& state) {
  return state.staged ? state.deployments[*state.staged].directory : "";
}

std::vector<std::string> former_order(const HostState& state, bool keep_staged) {
  std::vector<std::string> out;
  for (const Deployment& deployment : state.deployments) {
    if (keep_staged || !deployment.staged) out.push_back(deployment.directory);
  }
  return out;
}

}  // namespace

Result<void> refuse_without_boot(const HostState& state) {
  if (state.first || state.problems.empty()) return {};
  return fail(Kind::Boot, state.problems.front(), "mount /boot and try again; nothing was changed");
}

Result<std::vector<std::string>> switch_entries(LockedHost::Body& body,
                                                const std::vector<std::string>& directories) {
  const boot::Menu before = TRY(body.bootloader->read());
  const bool keeps_staged = !directories.empty() && directories.front() == staged_directory(body.state);
  const std::size_t first = keeps_staged ? 1 : 0;
  const std::vector<std::string> former = former_order(body.state, keeps_staged);
  TRY(body.sysroot.write(directories));
  std::vector<std::string> warnings = body.bootloader->after_switch(before);
  auto verified = failpoint("switch-written");
  if (verified) verified = body.bootloader->verify(directories.at(first));
  if (!verified) {
    Error error = std::move(verified.error());
    const auto restored = former.empty() ? Result<void>() : body.sysroot.write(former);
    error.message += restored ? "; the former boot order was restored"
                              : "; the former boot order could not be restored: " + restored.error().message;
    for (const std::string& lost : body.bootloader->after_switch(before)) error.message += "; " + lost;
    error.changed = !restored || (body.state.staged && !keeps_staged);
    return fail(std::move(error));
  }
  if (auto read = body.reload(); !read) warnings.push_back(read.error().message);
  return warnings;
}

}  // namespace rasupd
