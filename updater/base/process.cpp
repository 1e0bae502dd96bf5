#include "base/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <mutex>

#include "base/handle.hpp"

namespace rasupd {

std::chrono::system_clock::time_point SystemClock::now() const {
  return std::chrono::system_clock::now();
}

void SystemClock::sleep(std::chrono::milliseconds duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait_for(lock, stop, duration, [] { return false; });
}

namespace {

struct Pipe {
  Fd read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "creating a pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

[[noreturn]] void become(const std::vector<std::string>& argv, int in, int out, int err) {
  ::setpgid(0, 0);
  ::dup2(in, 0);
  ::dup2(out, 1);
  ::dup2(err, 2);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  // A path is executed as it is: execvp would hand a file the kernel refuses to a shell.
  if (argv[0].find('/') != std::string::npos) {
    ::execv(words[0], words.data());
  } else {
    ::execvp(words[0], words.data());
  }
  ::_exit(127);
}

/// Reads what is there into `text` up to `max`; false at the end.
bool drain(int fd, std::string& text, std::size_t max) {
  char buffer[8192];
  const ssize_t n = ::read(fd, buffer, sizeof buffer);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n == 0) return false;
  text.append(buffer, std::min(static_cast<std::size_t>(n), max - std::min(max, text.size())));
  return true;
}

/// True once the child has ended; it stays to be waited for.
bool has_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

/// Reads after the child's end that are still taken for its own: what it left in the background may talk for ever.
constexpr int kLastReads = 1024;

/// Feeds input and collects output until the child has ended, or time is up; false when it is. A child may close its
/// output long before it ends, and may end while something in the background keeps it open.
bool converse(pid_t child, Pipe& in, Pipe& out, Pipe& err, const RunLimits& limits, const std::stop_token& stop,
              Outcome& outcome) {
  const auto end = std::chrono::steady_clock::now() + limits.timeout;
  std::string_view input = limits.input;
  if (input.empty()) in.write.reset();
  int last_reads = 0;
  for (;;) {
    const bool ended = has_ended(child);
    if (ended && (!(out.read || err.read) || last_reads++ > kLastReads)) return true;
    if (stop.stop_requested() || std::chrono::steady_clock::now() >= end) return false;
    pollfd fds[3] = {{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}, {in.write.get(), POLLOUT, 0}};
    const int ready = ::poll(fds, 3, ended || !(out.read || err.read) ? 10 : 100);
    if (ready == 0 && ended) return true;
    if (ready <= 0) continue;
    if (fds[0].revents && !drain(out.read.get(), outcome.out, limits.max_output)) out.read.reset();
    if (fds[1].revents && !drain(err.read.get(), outcome.err, limits.max_output)) err.read.reset();
    if (fds[2].revents) {
      const ssize_t n = ::write(in.write.get(), input.data(), input.size());
      if (n > 0) input.remove_prefix(static_cast<std::size_t>(n));
      if (input.empty() || (n < 0 && errno != EINTR && errno != EAGAIN)) in.write.reset();
    }
  }
}

}  // namespace

Result<Outcome> SystemRunner::run(const std::vector<std::string>& argv, const RunLimits& limits) {
  Pipe in = TRY(make_pipe()), out = TRY(make_pipe()), err = TRY(make_pipe());
  const pid_t child = ::fork();
  if (child < 0) return fail_errno(errno, "starting " + argv.at(0));
  if (child == 0) become(argv, in.read.get(), out.write.get(), err.write.get());
  ::setpgid(child, child);  // here too: whoever comes first, the group exists before it may be killed
  in.read.reset();
  out.write.reset();
  err.write.reset();
  Outcome outcome;
  const bool finished = converse(child, in, out, err, limits, stop_, outcome);
  if (!finished) ::kill(-child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!finished && stop_.stop_requested())
    return fail(Kind::Cancelled, "interrupted while running " + argv[0]);
  if (!finished) {
    return fail(Kind::Failed,
                fmt::format("{} did not finish within {} s", argv[0], limits.timeout.count() / 1000));
  }
  outcome.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (outcome.exit_code == 127 && outcome.out.empty() && outcome.err.empty()) {
    return fail(Kind::Failed, "cannot run " + argv[0], "is it installed and in PATH?");
  }
  return outcome;
}

}  // namespace rasupd
