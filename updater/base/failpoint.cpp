#include "base/failpoint.hpp"

#ifdef RASUPD_FAILPOINTS

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "base/text.hpp"

namespace rasupd {
namespace {

void stall() {
  const char* go = std::getenv("RASUPD_FAILPOINT_GO");
  struct stat info {};
  for (int i = 0; go && i < 600 && ::stat(go, &info) != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

/// proc_sysrq_trigger "b": reboot without sync or unmount (Documentation/admin-guide/sysrq.rst).
void cut_power() {
  const int fd = ::open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);
  if (fd < 0 || ::write(fd, "b", 1) != 1) return;
  ::pause();
}

}  // namespace

Result<void> failpoint(std::string_view name) {
  const char* armed = std::getenv("RASUPD_FAILPOINT");
  if (!armed) return {};
  for (const std::string& item : split(armed, ',')) {
    const auto equals = item.find('=');
    if (std::string_view(item).substr(0, equals) != name) continue;
    const std::string action = equals == std::string::npos ? "error" : item.substr(equals + 1);
    if (action == "kill") ::kill(::getpid(), SIGKILL);
    if (action == "int") ::kill(::getpid(), SIGINT);
    if (action == "term") ::kill(::getpid(), SIGTERM);
    if (action == "stall") stall();
    if (action == "cut") cut_power();
    if (action == "nospace") return fail(Kind::NoSpace, fmt::format("failpoint {}: no space left", name));
    if (action == "error") return fail(Kind::Failed, fmt::format("failpoint {}", name));
    // A signal is delivered to the handler's thread; give the stop token time to be set.
    if (action == "int" || action == "term") std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return {};
}

}  // namespace rasupd

#endif
