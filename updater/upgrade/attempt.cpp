#include "upgrade/attempt.hpp"

#include <unistd.h>

#include "base/files.hpp"
#include "base/text.hpp"
#include "bootloader/detect.hpp"
#include "state/state_dir.hpp"

namespace rasupd {
namespace {

/// kured and others watch this file (Debian's convention of update-notifier).
constexpr const char* kRebootRequired = "/run/reboot-required";

}  // namespace

void record_attempt(const World& world, const std::string& state_dir, const std::string& verb,
                    const std::string& digest, bool changed, const Error* error) {
  if (error && (error->kind == Kind::Usage || error->kind == Kind::Busy || error->kind == Kind::Cancelled))
    return;
  JournalEvent event;
  event.event = "attempt";
  event.time = rfc3339(world.clock.now());
  event.verb = verb;
  event.digest = digest;
  event.result = error ? "failed" : changed ? "ok" : "unchanged";
  if (error) event.error = std::string(kind_name(error->kind)) + ": " + error->message;
  if (auto done = append_journal(state_dir, event); !done) {
    world.progress.note("warning: the journal could not be written: " + done.error().message);
  }
}

std::string state_directory_of(const World& world, const HostState& host) {
  const Deployment* current = host.current();
  return state_directory(world.sysroot, host.running, current ? current->stateroot : "default");
}

void refresh_reboot_required(const World& world, const HostState& host) {
  if (!host.running) return;
  const bool staged = host.staged && !host.deployments[*host.staged].locked;
  if (!staged && !host.rollback_queued) {
    ::unlink(kRebootRequired);
    return;
  }
  const std::size_t next = staged ? *host.staged : *host.first;
  const std::string text = "rasupd: a reboot activates " + host.deployments[next].manifest_digest + "\n";
  if (auto done = write_file_durably(kRebootRequired, text, 0644); !done) {
    world.progress.note("warning: " + done.error().message);
  }
}

Result<void> request_reboot(const World& world) {
  ::sync();
  const auto bootloader = boot::detect(world, true);
  const std::vector<std::string> command =
      bootloader ? (*bootloader)->reboot_command() : std::vector<std::string>{"systemctl", "reboot"};
  auto outcome = world.runner.run(command, RunLimits{});
  if (outcome && outcome->exit_code == 0) return {};
  Error error{Kind::Failed,
              "the reboot could not be requested: " +
                  (outcome ? std::string(printable(trim(outcome->err))) : outcome.error().message),
              "the update is staged; reboot by hand", true};
  return fail(std::move(error));
}

Result<void> require_running(const HostState& host, const std::string& what) {
  if (host.running) return {};
  return fail(Kind::Usage, what + " needs the running system: nothing booted from this sysroot",
              "leave it out; the next start of that disk uses the new default");
}

}  // namespace rasupd
