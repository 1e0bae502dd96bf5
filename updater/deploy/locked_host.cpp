#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/files.hpp"
#include "bootloader/detect.hpp"
#include "deploy/locked_host_body.hpp"

namespace rasupd {
namespace {

/// Our reading of the entries and libostree's must be the same: what we show is what it will rewrite.
Result<void> compare(const LockedHost::Body& body) {
  std::vector<std::string> ours;
  for (const Deployment& deployment : body.state.deployments) ours.push_back(deployment.directory);
  const std::vector<std::string> theirs = body.sysroot.deployments();
  if (ours == theirs) return {};
  const std::string why = body.state.problems.empty() ? "" : ": " + body.state.problems.front();
  return fail(Kind::Boot,
              fmt::format("boot entries cannot be relied upon ({} read, libostree sees {}){}", ours.size(),
                          theirs.size(), why),
              "look at boot/loader/entries and ostree/deploy; nothing was changed");
}

}  // namespace

std::string LockedHost::Body::path(const std::string& relative) const {
  return path_join(world.sysroot, relative);
}

Result<void> LockedHost::Body::reload() {
  TRY(sysroot.reload());
  state = TRY(read_host(world));
  return compare(*this);
}

LockedHost::LockedHost(std::unique_ptr<Body> body) : body_(std::move(body)) {}
LockedHost::~LockedHost() = default;
LockedHost::LockedHost(LockedHost&&) noexcept = default;
LockedHost& LockedHost::operator=(LockedHost&&) noexcept = default;

Result<LockedHost> LockedHost::lock(const World& world) {
  const HostState before = TRY(read_host(world));
  if (!before.ostree) {
    return fail(Kind::Boot, world.sysroot + ": no ostree repository there", "install an image first");
  }
  ::umask(022);  // directories that libostree makes are read by everybody
  auto sysroot = Sysroot::lock(world.sysroot, before.running);
  if (!sysroot) {
    Error error = std::move(sysroot.error());
    if (error.kind == Kind::Boot && !before.problems.empty())
      error.message += " (" + before.problems.front() + ")";
    return fail(std::move(error));
  }
  auto bootloader = TRY(boot::detect(world, before.running));
  std::unique_ptr<Body> body(new Body{world, std::move(*sysroot), {}, std::move(bootloader)});
  body->state = TRY(read_host(world));  // again: what was read before the lock may be old
  TRY(compare(*body));
  TRY(follow_entries(*body));
  return LockedHost(std::move(body));
}

Result<LockedHost> LockedHost::lock_patiently(const World& world) {
  constexpr int kTries = 240;
  constexpr std::chrono::milliseconds kPause{500};
  for (int tries = 1;; ++tries) {
    auto host = lock(world);
    if (host || host.error().kind != Kind::Busy || tries >= kTries) return host;
    world.clock.sleep(kPause, world.stop);
    TRY(world.check_stop());
  }
}

const HostState& LockedHost::state() const {
  return body_->state;
}
Result<void> LockedHost::reload() {
  return body_->reload();
}

Result<void> init_sysroot(const World& world, const std::string& stateroot) {
  ::umask(022);
  return Sysroot::initialize(world.sysroot, stateroot);
}

}  // namespace rasupd
