#include "import/pull_progress.hpp"

#include <fmt/format.h>

namespace rasupd {
namespace {

constexpr std::chrono::milliseconds kPause{200};

}  // namespace

PullProgress::PullProgress(const World& world, const ImportPlan& plan, const std::vector<LayerPlan>& missing)
    : world_(world) {
  event_.unit = ProgressEvent::Unit::bytes;
  event_.task = "pulling";
  event_.description = fmt::format("Pulling {} layers", missing.size());
  event_.id = "layers";
  event_.bytes_cached = plan.bytes_present;
  event_.steps_cached = plan.present;
  event_.steps_total = missing.size();
  for (const LayerPlan& layer : missing) {
    event_.bytes_total += layer.layer.size;
    Subtask task;
    task.subtask = "layer";
    task.id = layer.layer.digest.str();
    task.description = "layer " + layer.layer.digest.hex().substr(0, 12);
    task.bytes_total = layer.layer.size;
    event_.subtasks.push_back(std::move(task));
  }
}

void PullProgress::add(std::size_t layer, std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  event_.bytes += bytes;
  event_.subtasks[layer].bytes += bytes;
  send(false);
}

void PullProgress::finish(std::size_t layer) {
  const std::scoped_lock lock(mutex_);
  ++event_.steps;
  event_.subtasks[layer].completed = true;
  send(false);
}

void PullProgress::complete() {
  const std::scoped_lock lock(mutex_);
  if (!event_.subtasks.empty()) send(true);
}

void PullProgress::send(bool always) {
  const auto now = world_.clock.now();
  if (!always && now >= last_ && now - last_ < kPause) return;  // a clock set back must not silence it
  last_ = now;
  world_.progress.update(event_);
}

}  // namespace rasupd
