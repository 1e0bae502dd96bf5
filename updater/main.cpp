// argv → verb → exit code. The only catch-all of the program, and the only place that knows signals.

#include <sys/stat.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <cstdio>
#include <exception>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "verbs/cli.hpp"

namespace {

volatile int stopped_by = 0;

/// SIGINT, SIGTERM and SIGHUP ask the verb to stop; a thread waits for them, so that no handler runs anywhere.
void watch_signals(std::stop_source& source, const sigset_t& signals) {
  std::thread([&source, signals] {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) return;
    stopped_by = signal;
    source.request_stop();
  }).detach();
}

}  // namespace

int main(int argc, char** argv) {
  // Names in images are UTF-8; libarchive and libostree ask the locale. C.UTF-8 is part of every glibc.
  std::setlocale(LC_CTYPE, "C.UTF-8");
  ::umask(022);
  std::signal(SIGPIPE, SIG_IGN);
  try {
    static std::stop_source source;
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);  // a dropped ssh session must not cut the commit point in half
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    watch_signals(source, signals);
    return rasupd::run_program(arguments, source.get_token(), stopped_by);
  } catch (const std::exception& bug) {
    std::fprintf(stderr, "error: a bug in rasupd: %s\nhint: please report it with the command that you ran\n",
                 bug.what());
    return 70;
  }
}
