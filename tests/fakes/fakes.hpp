#pragma once
// Fakes of the seams in base/world.hpp. Each records what it was asked, answers from what the test put in,
// and never sleeps, starts a process or prints. All are thread-safe, because importers use them from several.

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/world.hpp"

namespace rasupd::fakes {

/// A clock that moves only when someone sleeps on it or the test advances it.
class FakeClock : public Clock {
 public:
  using time_point = std::chrono::system_clock::time_point;

  /// 2026-01-01T00:00:00Z: a fixed start, so that no test depends on today.
  explicit FakeClock(time_point start = time_point(std::chrono::seconds(1767225600))) : now_(start) {}

  time_point now() const override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  void sleep(std::chrono::milliseconds duration, const std::stop_token& stop) override {
    {
      const std::lock_guard lock(mutex_);
      sleeps_.push_back(duration);
      if (!stop.stop_requested()) now_ += duration;
    }
    if (on_sleep) on_sleep(duration);
  }
  void advance(std::chrono::milliseconds duration) {
    const std::lock_guard lock(mutex_);
    now_ += duration;
  }
  /// Every duration that was asked for, in order.
  std::vector<std::chrono::milliseconds> sleeps() const {
    const std::lock_guard lock(mutex_);
    return sleeps_;
  }

  std::function<void(std::chrono::milliseconds)>
      on_sleep;  ///< called after each sleep, e.g. to request a stop

 private:
  mutable std::mutex mutex_;
  time_point now_;
  std::vector<std::chrono::milliseconds> sleeps_;
};

/// Answers run() from `answer`; without one every program "cannot be started".
class FakeRunner : public Runner {
 public:
  struct Call {
    std::vector<std::string> argv;
    std::string input;
  };

  Result<Outcome> run(const std::vector<std::string>& argv, const RunLimits& limits) override {
    {
      const std::lock_guard lock(mutex_);
      calls_.push_back({argv, limits.input});
    }
    if (!answer) return fail(Kind::Failed, "cannot start " + (argv.empty() ? "nothing" : argv[0]));
    return answer(argv, limits);
  }
  std::vector<Call> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

  std::function<Result<Outcome>(const std::vector<std::string>&, const RunLimits&)> answer;

 private:
  mutable std::mutex mutex_;
  std::vector<Call> calls_;
};

/// Shows nothing; keeps the notes, which are what tests look at.
class NullProgress : public Progress {
 public:
  void update(const ProgressEvent&) override {}
  void note(std::string_view line) override {
    const std::lock_guard lock(mutex_);
    notes_.emplace_back(line);
  }
  void result(std::string_view) override {}
  std::vector<std::string> notes() const {
    const std::lock_guard lock(mutex_);
    return notes_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> notes_;
};

/// A World of fakes on given roots, for tests that need nothing special:
/// `FakeWorld fake; fake.world.config_root = …; open(fake.world, …)`.
struct FakeWorld {
  FakeClock clock;
  FakeRunner runner;
  NullProgress progress;
  std::stop_source stop;
  World world{"/", "/", clock, runner, progress, stop.get_token()};

  FakeWorld() = default;
  FakeWorld(const FakeWorld&) = delete;
  FakeWorld& operator=(const FakeWorld&) = delete;
};

}  // namespace rasupd::fakes
