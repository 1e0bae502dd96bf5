#include "health/motd.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/text.hpp"
#include "health/situation.hpp"
#include "policy/verdict.hpp"

namespace rasupd {
namespace {

constexpr const char* kFolder = "/run/motd.d";
constexpr const char* kFile = "/run/motd.d/50-rasupd";

std::string what_happened(const std::string& reason) {
  if (reason == policy::kBootFailed) return "did not come up";
  if (reason == policy::kHealthFailed) return "failed its health checks";
  return "was marked bad";
}

}  // namespace

std::string motd_text(const std::optional<JournalEvent>& last_verdict) {
  if (!last_verdict || last_verdict->event != "rollback") return "";
  const std::string reason = last_verdict->error.substr(0, last_verdict->error.find(':'));
  return fmt::format(
      "rasupd: the last update {}; the image before it boots instead.\n"
      "  image:  {}\n  when:   {}\n  why:    {}\n"
      "  The image is held: it is not taken again until another is published, or with `rasupd upgrade "
      "--retry-held`.\n"
      "  See `rasupd status` and `journalctl -b -1`; `rasupd health mark-good` removes this message.\n",
      what_happened(reason), printable(last_verdict->digest), printable(last_verdict->time),
      printable(last_verdict->error));
}

void refresh_motd(const World& world, const std::string& state_dir) {
  const auto last = last_event_of(state_dir, {"rollback", "mark-good"});
  const std::string text = last ? motd_text(*last) : "";
  if (text.empty()) {
    ::unlink(kFile);
    return;
  }
  auto written = make_directories(kFolder);
  if (written) written = write_file_durably(kFile, text, 0644);
  if (!written) world.progress.note("warning: " + written.error().message);
}

}  // namespace rasupd
