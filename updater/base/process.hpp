#pragma once
// The real Clock and Runner.

#include "base/world.hpp"

namespace rasupd {

class SystemClock : public Clock {
 public:
  std::chrono::system_clock::time_point now() const override;
  void sleep(std::chrono::milliseconds duration, const std::stop_token& stop) override;
};

/// Starts programs by fork and execvp in their own process group; on timeout or stop the group is killed.
class SystemRunner : public Runner {
 public:
  explicit SystemRunner(std::stop_token stop) : stop_(std::move(stop)) {}
  Result<Outcome> run(const std::vector<std::string>& argv, const RunLimits& limits) override;

 private:
  std::stop_token stop_;
};

}  // namespace rasupd
