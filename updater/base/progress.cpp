#include "base/progress.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/text.hpp"

namespace rasupd {
namespace {

void write_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(2, text.data(), text.size());
    if (n < 0 && errno != EINTR) return;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
}

double share(const ProgressEvent& e) {
  const std::uint64_t total = e.unit == ProgressEvent::Unit::bytes ? e.bytes_total : e.steps_total;
  const std::uint64_t done = e.unit == ProgressEvent::Unit::bytes ? e.bytes : e.steps;
  return total == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
}

class TerminalProgress : public Progress {
 public:
  ~TerminalProgress() override { clear(); }

  void update(const ProgressEvent& e) override {
    const std::lock_guard lock(mutex_);
    if (e.task != task_) {
      task_ = e.task;
      started_ = std::chrono::steady_clock::now();
    }
    std::string tail;
    if (e.unit == ProgressEvent::Unit::bytes) {
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
      tail = fmt::format("{} / {}", human_size(e.bytes), human_size(e.bytes_total));
      if (seconds > 0.5)
        tail += fmt::format("  {}/s", human_size(static_cast<std::uint64_t>(e.bytes / seconds)));
    } else {
      const auto current =
          std::find_if(e.subtasks.begin(), e.subtasks.end(), [](const Subtask& s) { return !s.completed; });
      tail = current == e.subtasks.end() ? "done" : current->description;
    }
    draw(e.description, share(e), tail);
  }
  void note(std::string_view line) override {
    const std::lock_guard lock(mutex_);
    clear();
    write_stderr(std::string(line) + "\n");
  }
  void result(std::string_view) override {
    const std::lock_guard lock(mutex_);
    clear();
  }

 private:
  void draw(std::string_view what, double done, std::string_view tail) {
    winsize size{};
    const int columns = ::ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
    const int bar = std::clamp(columns - 50, 10, 40);
    const int filled = static_cast<int>(done * bar + 0.5);
    std::string line = fmt::format("{:<16.16} [{}{}] {:3.0f}%  {}", what, std::string(filled, '='),
                                   std::string(bar - filled, ' '), done * 100, tail);
    if (static_cast<int>(line.size()) >= columns) line.resize(columns - 1);
    write_stderr("\r\x1b[K" + line);
    drawn_ = true;
  }
  void clear() {
    if (drawn_) write_stderr("\r\x1b[K");
    drawn_ = false;
  }

  std::mutex mutex_;
  std::string task_;
  std::chrono::steady_clock::time_point started_;
  bool drawn_ = false;
};

class PlainProgress : public Progress {
 public:
  void update(const ProgressEvent& e) override {
    const std::lock_guard lock(mutex_);
    const int tenth = static_cast<int>(share(e) * 10);
    auto [seen, fresh] = tenths_.try_emplace(e.task, -1);
    if (!fresh && seen->second == tenth) return;
    seen->second = tenth;
    if (e.unit == ProgressEvent::Unit::bytes) {
      write_stderr(fmt::format("{}: {}% ({} of {})\n", e.description, tenth * 10, human_size(e.bytes),
                               human_size(e.bytes_total)));
    } else {
      write_stderr(fmt::format("{}: {} of {}\n", e.description, e.steps, e.steps_total));
    }
  }
  void note(std::string_view line) override { write_stderr(std::string(line) + "\n"); }
  void result(std::string_view) override {}

 private:
  std::mutex mutex_;
  std::map<std::string, int> tenths_;
};

class SilentProgress : public Progress {
 public:
  explicit SilentProgress(bool quiet) : quiet_(quiet) {}
  void update(const ProgressEvent&) override {}
  void note(std::string_view line) override {
    if (!quiet_) write_stderr(std::string(line) + "\n");
  }
  void result(std::string_view) override {}

 private:
  bool quiet_;
};

class JsonProgress : public Progress {
 public:
  explicit JsonProgress(int fd) : fd_(fd) {
    ::signal(SIGPIPE, SIG_IGN);  // a reader that went away is EPIPE here, never a death
    put({{"type", "Start"}, {"version", "0.1.0"}});
  }

  void update(const ProgressEvent& e) override {
    const std::lock_guard lock(mutex_);
    const bool bytes = e.unit == ProgressEvent::Unit::bytes;
    const auto now = std::chrono::steady_clock::now();
    const bool complete = bytes ? e.bytes >= e.bytes_total : true;
    if (!complete && now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    Json subtasks = Json::array();
    for (const Subtask& s : e.subtasks) {
      Json item = {{"subtask", s.subtask}, {"description", s.description}, {"id", s.id}};
      if (bytes) {
        item.update({{"bytesCached", s.bytes_cached}, {"bytes", s.bytes}, {"bytesTotal", s.bytes_total}});
      } else {
        item["completed"] = s.completed;
      }
      subtasks.push_back(std::move(item));
    }
    Json line = {{"type", bytes ? "ProgressBytes" : "ProgressSteps"},
                 {"task", e.task},
                 {"description", e.description},
                 {"id", e.id},
                 {"stepsCached", e.steps_cached},
                 {"steps", e.steps},
                 {"stepsTotal", e.steps_total},
                 {"subtasks", std::move(subtasks)}};
    if (bytes)
      line.update({{"bytesCached", e.bytes_cached}, {"bytes", e.bytes}, {"bytesTotal", e.bytes_total}});
    if (complete || writable(0)) put(line);
  }
  void note(std::string_view) override {}
  void result(std::string_view json) override {
    const std::lock_guard lock(mutex_);
    Json line = Json::parse(json, nullptr, false);
    if (!line.is_object()) return;
    line["type"] = "Result";
    put(line);
  }

 private:
  bool writable(int milliseconds) const {
    pollfd poll_fd{fd_, POLLOUT, 0};
    return fd_ >= 0 && ::poll(&poll_fd, 1, milliseconds) == 1;
  }

  /// A reader that has stopped reading must not stop the upgrade: it loses the stream after kPatience.
  void put(const Json& line) {
    constexpr int kPatience = 2000;
    std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    std::string_view rest = text;
    while (!rest.empty()) {
      if (!writable(kPatience)) fd_ = -1;
      if (fd_ < 0) return;
      // pipe(7): a writable pipe takes PIPE_BUF bytes without blocking, and no more is promised.
      const ssize_t n = ::write(fd_, rest.data(), std::min<std::size_t>(rest.size(), PIPE_BUF));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        fd_ = -1;
        return;
      }
      rest.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  int fd_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point last_{};
};

class CombinedProgress : public Progress {
 public:
  explicit CombinedProgress(std::vector<std::unique_ptr<Progress>> parts) : parts_(std::move(parts)) {}
  void update(const ProgressEvent& e) override {
    for (const auto& part : parts_) part->update(e);
  }
  void note(std::string_view line) override {
    for (const auto& part : parts_) part->note(line);
  }
  void result(std::string_view json) override {
    for (const auto& part : parts_) part->result(json);
  }

 private:
  std::vector<std::unique_ptr<Progress>> parts_;
};

}  // namespace

std::unique_ptr<Progress> terminal_progress() {
  return std::make_unique<TerminalProgress>();
}
std::unique_ptr<Progress> plain_progress() {
  return std::make_unique<PlainProgress>();
}
std::unique_ptr<Progress> silent_progress(bool quiet) {
  return std::make_unique<SilentProgress>(quiet);
}
std::unique_ptr<Progress> json_progress(int fd) {
  return std::make_unique<JsonProgress>(fd);
}
std::unique_ptr<Progress> combined_progress(std::vector<std::unique_ptr<Progress>> parts) {
  return std::make_unique<CombinedProgress>(std::move(parts));
}

Steps::Steps(Progress& progress, std::string task, std::string description, std::vector<std::string> names)
    : progress_(progress) {
  event_.task = event_.id = std::move(task);
  event_.description = std::move(description);
  event_.steps_total = names.size();
  for (std::string& name : names) {
    Subtask subtask;
    subtask.subtask = subtask.id = subtask.description = std::move(name);
    event_.subtasks.push_back(std::move(subtask));
  }
}

void Steps::begin(std::size_t index) {
  for (std::size_t i = 0; i < event_.subtasks.size(); ++i) event_.subtasks[i].completed = i < index;
  event_.steps = index;
  progress_.update(event_);
}

}  // namespace rasupd
