#pragma once
// Progress of a pull, at most five events a second (contract, section 3); renderers need not thin them out.

#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include "import/import.hpp"

namespace rasupd {

class PullProgress {
 public:
  PullProgress(const World& world, const ImportPlan& plan, const std::vector<LayerPlan>& missing);
  void add(std::size_t layer, std::uint64_t bytes);
  void finish(std::size_t layer);
  void complete();

 private:
  void send(bool always);

  const World& world_;
  std::mutex mutex_;
  ProgressEvent event_;
  std::chrono::system_clock::time_point last_{};
};

}  // namespace rasupd
