#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "state/state_dir.hpp"

namespace rasupd {
namespace {

/// Years of daily attempts; past it the older half is dropped, so that the file never grows without bound.
constexpr std::size_t kMaxJournal = 512u << 10;

std::string line_of(const JournalEvent& e) {
  const Json line = {{"v", 1},          {"event", e.event},   {"time", e.time},
                     {"verb", e.verb},  {"result", e.result}, {"digest", e.digest},
                     {"error", e.error}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<JournalEvent> event_of(const std::string& line) {
  const auto json = parse_json(line, "journal", Kind::Failed, 64u << 10);
  if (!json || !json->is_object()) return std::nullopt;
  JournalEvent e;
  const auto take = [&](const char* key, std::string& out) {
    if (auto value = json_string(*json, key, "journal", Kind::Failed)) out = *value;
  };
  take("event", e.event);
  take("time", e.time);
  take("verb", e.verb);
  take("result", e.result);
  take("digest", e.digest);
  take("error", e.error);
  return e;
}

Result<void> trim_journal(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || static_cast<std::size_t>(info.st_size) <= kMaxJournal) return {};
  const auto text = TRY(read_file(path, 2 * kMaxJournal));
  if (!text) return {};
  const auto cut = text->find('\n', text->size() - kMaxJournal / 2);
  return write_file_durably(path, std::string_view(*text).substr(cut + 1), 0600);
}

}  // namespace

Result<void> append_journal(const std::string& directory, const JournalEvent& event) {
  if (!exists(directory)) TRY(make_directories(directory, 0700));
  const std::string path = path_join(directory, "journal");
  TRY(trim_journal(path));
  const bool fresh = !exists(path);
  Fd fd(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_errno(errno, "opening " + path);
  std::string line = line_of(event);
  // A line torn by a power cut must not swallow the next one.
  struct stat info {};
  char last = '\n';
  if (::fstat(fd.get(), &info) == 0 && info.st_size > 0 &&
      ::pread(fd.get(), &last, 1, info.st_size - 1) == 1 && last != '\n') {
    line.insert(0, "\n");
  }
  // One write of O_APPEND: lines of two processes never mix.
  if (::write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    return fail_errno(errno, "writing " + path);
  }
  if (::fsync(fd.get()) != 0) return fail_errno(errno, "syncing " + path);
  if (fresh) TRY(fsync_directory(directory));
  return {};
}

Result<std::optional<JournalEvent>> last_event(const std::string& directory, const std::string& event) {
  return last_event_of(directory, {event});
}

Result<std::optional<JournalEvent>> last_event_of(const std::string& directory,
                                                  const std::vector<std::string>& events) {
  const auto text = TRY(read_file(path_join(directory, "journal"), 2 * kMaxJournal));
  if (!text) return std::optional<JournalEvent>{};
  const auto lines = split(*text, '\n');
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    auto found = event_of(*line);
    if (found && std::find(events.begin(), events.end(), found->event) != events.end()) return found;
  }
  return std::optional<JournalEvent>{};
}

}  // namespace rasupd
