#pragma once
// The renderers of Progress (a terminal's bar, plain lines, JSON lines, none) and Step, which reports one
// task's steps by scope.

#include <memory>
#include <string>
#include <vector>

#include "base/world.hpp"

namespace rasupd {

/// One line on a terminal, redrawn; notes go above it. Writes to standard error.
std::unique_ptr<Progress> terminal_progress();
/// A line per task and per tenth of its bytes, to standard error.
std::unique_ptr<Progress> plain_progress();
/// Only notes, or (quiet) nothing at all.
std::unique_ptr<Progress> silent_progress(bool quiet);
/// JSON lines in bootc's shape to `fd` (not closed), starting with Start; at most five byte events a second,
/// completions are never dropped. A failing write ends the stream in silence.
std::unique_ptr<Progress> json_progress(int fd);
/// Forwards to all of them.
std::unique_ptr<Progress> combined_progress(std::vector<std::unique_ptr<Progress>> parts);

/// A task of few named steps: `Steps s(progress, "staging", "Deploying", {"merging", "deploying"});
/// s.begin(0);` The destructor marks nothing: what was not finished stays unfinished.
class Steps {
 public:
  Steps(Progress& progress, std::string task, std::string description, std::vector<std::string> names);
  /// Step `index` starts; those before it are done. `names.size()` ends the task.
  void begin(std::size_t index);

 private:
  Progress& progress_;
  ProgressEvent event_;
};

}  // namespace rasupd
