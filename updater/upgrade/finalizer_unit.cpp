// The shutdown unit on a machine whose image does not bring one (taken over from ostree or bootc).

#include <unistd.h>

#include <climits>

#include <fmt/format.h>

#include "base/files.hpp"
#include "base/text.hpp"
#include "upgrade/finalize.hpp"

namespace rasupd {
namespace {

constexpr const char* kUnit = "rasupd-finalize.service";
constexpr const char* kRuntimeUnits = "/run/systemd/system";

/// The same as examples/units/rasupd-finalize.service, for this very program.
std::string unit_text(const std::string& program) {
  return fmt::format(
      "[Unit]\nDescription=Finalize the staged deployment (rasupd)\nDefaultDependencies=no\n"
      "ConditionPathExists=/run/ostree-booted\nRequiresMountsFor=/sysroot /boot /var\n"
      "After=local-fs.target efi.mount boot-efi.mount boot-firmware.mount ostree-finalize-staged.service\nBefore=final.target\nConflicts=final.target\n\n"
      "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\nExecStop={} finalize\n"
      "TimeoutStopSec=15min\n",
      program);
}

Result<bool> systemctl(const World& world, std::vector<std::string> words) {
  words.insert(words.begin(), "systemctl");
  const Outcome outcome = TRY(world.runner.run(words, RunLimits{}));
  return outcome.exit_code == 0;
}

Result<std::string> this_program() {
  char path[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) return fail_errno(errno, "reading /proc/self/exe");
  return std::string(path, static_cast<std::size_t>(length));
}

}  // namespace

Result<void> ensure_finalizer(const World& world) {
  if (TRY(systemctl(world, {"--quiet", "is-active", kUnit}))) return {};
  if (TRY(systemctl(world, {"--quiet", "start", kUnit}))) return {};
  TRY(make_directories(kRuntimeUnits));
  const std::string text = unit_text(TRY(this_program()));
  TRY(write_file_durably(path_join(kRuntimeUnits, kUnit), text, 0644));
  TRY(systemctl(world, {"daemon-reload"}));
  if (TRY(systemctl(world, {"--quiet", "start", kUnit}))) return {};
  return fail(Kind::Failed, std::string(kUnit) + " cannot be started: what is staged would not be taken at shutdown",
              "see `systemctl status rasupd-finalize.service`; nothing was changed");
}

}  // namespace rasupd
