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

/// The entries as they were, in the same two steps.
Result<void> restore(LockedHost::Body& body, const std::vector<std::string>& former, const boot::Menu& before) {
  if (former.empty()) return {};
  const boot::Next next = TRY(next_menu(body, former));
  TRY(body.bootloader->prepare(next));
  TRY(body.sysroot.write(former));
  TRY(body.bootloader->finish(before, next));
  return {};
}

/// A trial belongs to its deployment: it goes on while that stays first, whatever else of the menu changes.
Result<std::optional<boot::Trial>> trial_of(const LockedHost::Body& body, const boot::Next& next, unsigned tries) {
  if (next.entries.empty()) return std::optional<boot::Trial>{};
  const std::string& first = next.entries.front().deployment;
  if (tries > 0) return std::optional<boot::Trial>{boot::Trial{first, tries}};
  const HostState& state = body.state;
  if (!state.first || !state.deployments[*state.first].directory.ends_with("/" + first))
    return std::optional<boot::Trial>{};
  auto pending = TRY(body.bootloader->trial());
  if (pending && pending->deployment != first) pending.reset();
  return pending;
}

/// Bootloader's part, entries, bootloader's part, proof. `written` turns true with the entries.
Result<std::vector<std::string>> turn(LockedHost::Body& body, const std::vector<std::string>& directories,
                                      unsigned tries, const boot::Menu& before, bool& written) {
  boot::Next next = TRY(next_menu(body, directories));
  next.trial = TRY(trial_of(body, next, tries));
  TRY(body.bootloader->prepare(next));
  TRY(failpoint("switch-prepared"));
  written = true;
  TRY(body.sysroot.write(directories));
  TRY(failpoint("switch-written"));
  std::vector<std::string> warnings = TRY(body.bootloader->finish(before, next));
  TRY(failpoint("switch-finished"));
  const bool keeps_staged = directories.front() == staged_directory(body.state);
  TRY(body.bootloader->verify(directories.at(keeps_staged ? 1 : 0)));
  return warnings;
}

}  // namespace

Result<void> refuse_without_boot(const HostState& state) {
  if (state.first || state.problems.empty()) return {};
  return fail(Kind::Boot, state.problems.front(), "mount /boot and try again; nothing was changed");
}

Result<std::vector<std::string>> switch_entries(LockedHost::Body& body, const std::vector<std::string>& directories,
                                                unsigned tries) {
  const boot::Menu before = TRY(body.bootloader->read());
  const bool keeps_staged = !directories.empty() && directories.front() == staged_directory(body.state);
  const std::vector<std::string> former = former_order(body.state, keeps_staged);
  bool written = false;
  auto turned = turn(body, directories, tries, before, written);
  if (!turned) {
    Error error = std::move(turned.error());
    const auto restored = written ? restore(body, former, before) : Result<void>();
    if (written) {
      error.message += restored
                           ? "; the former boot order was restored"
                           : "; the former boot order could not be restored: " + restored.error().message;
    }
    error.changed = !restored || (written && body.state.staged && !keeps_staged);
    return fail(std::move(error));
  }
  std::vector<std::string> warnings = std::move(*turned);
  if (auto read = body.reload(); !read) warnings.push_back(read.error().message);
  return warnings;
}

}  // namespace rasupd
