#pragma once
// World: everything outside the program that a step may need, handed down and never global. Clock, Runner
// and Progress are three of the four interfaces of the house (the fourth is boot::Bootloader).

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rasupd {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::chrono::system_clock::time_point now() const = 0;
  /// Sleeps up to `duration`; returns early when `stop` is requested.
  virtual void sleep(std::chrono::milliseconds duration, const std::stop_token& stop) = 0;
};

struct Outcome {
  int exit_code = 0;  ///< 128 + signal when killed
  std::string out;    ///< capped at RunLimits::max_output
  std::string err;
};
struct RunLimits {
  std::chrono::milliseconds timeout{60'000};
  std::size_t max_output = 1 << 20;
  std::string input{};  ///< written to the child's standard input
};

/// Runs other programs (never through a shell). Errors: Failed when it cannot be started or timed out.
class Runner {
 public:
  virtual ~Runner() = default;
  virtual Result<Outcome> run(const std::vector<std::string>& argv, const RunLimits& limits) = 0;
};

/// One progress state in the shape of bootc's progress protocol (docs/schema/progress.json).
struct Subtask {
  std::string subtask, description, id;
  std::uint64_t bytes_cached = 0, bytes = 0, bytes_total = 0;
  bool completed = false;
};
struct ProgressEvent {
  enum class Unit { bytes, steps } unit = Unit::steps;
  std::string task, description, id;
  std::uint64_t bytes_cached = 0, bytes = 0, bytes_total = 0;
  std::uint64_t steps_cached = 0, steps = 0, steps_total = 0;
  std::vector<Subtask> subtasks;
};

/// Renders progress. Thread-safe; never fails the caller: a reader that went away only ends the stream.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void update(const ProgressEvent& event) = 0;
  /// A line for a person, e.g. a warning; goes to standard error.
  virtual void note(std::string_view line) = 0;
  /// The last line of a JSON stream; other renderers ignore it.
  virtual void result(std::string_view json) = 0;
};

struct World {
  std::string sysroot = "/";      ///< the physical root that is worked on
  std::string config_root = "/";  ///< where /etc, /run and /usr/lib are read
  Clock& clock;
  Runner& runner;
  Progress& progress;
  std::stop_token stop{};

  bool stopped() const { return stop.stop_requested(); }
  /// Error Cancelled once a stop was requested.
  Result<void> check_stop() const {
    if (stopped()) return fail(Kind::Cancelled, "interrupted; nothing was changed");
    return {};
  }
};

}  // namespace rasupd
