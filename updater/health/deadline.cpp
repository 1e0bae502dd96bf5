// The deadline: a userspace that never comes to a verdict ends here, not with a person.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/failpoint.hpp"
#include "bootloader/detect.hpp"
#include "base/text.hpp"
#include "health/judge.hpp"
#include "health/situation.hpp"
#include "upgrade/attempt.hpp"

namespace rasupd {
namespace {

constexpr double kPause = 5;
/// A run of the checks ends itself by its own deadline; this is for writing its verdict down.
constexpr double kMargin = 60;
/// `systemctl reboot` asks logind first, and while userspace hangs before basic.target nothing starts that: it would wait
/// there. This asks the init system itself, over its own socket.
const std::vector<std::string> kAskInit = {"systemctl", "--no-block", "--job-mode=replace-irreversibly", "start",
                                           "reboot.target"};
/// An init system that has not begun to shut down by then will not.
constexpr std::chrono::seconds kRebootPatience{60};

/// When this start is over, in seconds since it began; nullopt: there is a verdict, or nothing on trial.
std::optional<double> end_of_start(const Settings& settings, const std::string& state_dir,
                                   const std::string& booted) {
  const auto record = read_trial(state_dir);
  if (!record || !*record || (*record)->deployment != booted) return std::nullopt;
  const double deadline = settings.deadline;
  const auto run = read_last_run(kRunDirectory);
  if (!run || !*run) return deadline;
  if ((*run)->state != RunState::running) return std::nullopt;
  return (*run)->uptime + deadline + kMargin;
}

/// A firmware that needs an argument gets it by its own command, and this one only if that fails.
Result<void> ask_for_reboot(const World& world, HealthReport& report) {
  const auto bootloader = TRY(boot::detect(world, true));
  if (bootloader->reboot_command().size() != 2 && reboot_for(world, report)) return {};
  ::sync();
  const Outcome asked = TRY(world.runner.run(kAskInit, RunLimits{}));
  if (asked.exit_code != 0) return fail(Kind::Failed, "the init system refuses: " + printable(trim(asked.err)));
  report.rebooting = true;
  return {};
}

/// This start is over. Whatever cannot be done or told on the way: the reboot is asked for.
Result<HealthReport> end_start(const World& world, const Settings& settings) {
  HealthReport report;
  const std::string why = fmt::format("deadline: no verdict within {} s of the start", settings.deadline);
  const auto acted = [&]() -> Result<bool> {
    {
      LockedHost host = TRY(LockedHost::lock_patiently(world));
      const Reconciled settled = TRY(reconcile(world, host));
      if (!settled.now.on_trial()) return settled.reboot;
    }
    return act_on(world, settings, false, policy::kBootFailed, why, report);
  }();
  if (!acted) world.progress.note("warning: " + acted.error().message);
  if (acted && !*acted) return report;  // the verdict came in the last moment
  if (world.stopped()) return fail(Kind::Cancelled, "interrupted; the machine is shutting down");
  world.progress.note(why + ": rebooting");
  if (auto asked = ask_for_reboot(world, report); !asked)
    world.progress.note("warning: " + asked.error().message);
  TRY(failpoint("deadline-asked"));
  world.clock.sleep(kRebootPatience, world.stop);  // a shutdown that has begun stops this very process
  TRY(world.check_stop());
  const Outcome forced = TRY(world.runner.run({"systemctl", "reboot", "--force", "--force"}, RunLimits{}));
  if (forced.exit_code != 0) return fail(Kind::Failed, "the machine does not reboot", "reset it");
  return report;
}

}  // namespace

Result<HealthReport> wait_for_deadline(const World& world, const Settings& settings) {
  const HostState host = TRY(read_host(world));
  TRY(require_running(host, "health deadline"));
  const std::string state_dir = state_directory_of(world, host);
  const std::string booted = deployment_id(host.deployments[*host.booted]);
  for (;;) {
    const auto end = end_of_start(settings, state_dir, booted);
    if (!end) return HealthReport{};
    const double left = *end - TRY(since_start());
    if (left <= 0) break;
    world.clock.sleep(std::chrono::milliseconds(static_cast<long>(std::min(left, kPause) * 1000) + 1),
                      world.stop);
    TRY(world.check_stop());
  }
  return end_start(world, settings);
}

}  // namespace rasupd
