// Status for a person: what runs, what comes next, what there is to go back to, what went wrong last.

#include <fmt/format.h>

#include "base/text.hpp"
#include "verbs/status_document.hpp"

namespace rasupd {
namespace {

std::string role_of(const HostState& host, std::size_t i) {
  if (host.staged == i) return host.deployments[i].locked ? "Staged (held back)" : "Staged";
  if (host.booted == i) return host.rollback_queued ? "Booted (another one boots next)" : "Booted";
  if (!host.booted && host.first == i) return "Default";
  if (host.rollback == i) return host.rollback_queued ? "Next boot" : "Rollback";
  return "Other";
}

std::string deployment_text(const HostState& host, std::size_t i) {
  const Deployment& d = host.deployments[i];
  const char mark = host.booted == i || (!host.booted && host.first == i) ? '*' : ' ';
  std::string text = fmt::format("{} {} {}: {}\n", mark, i, role_of(host, i),
                                 d.image ? d.image->str() : "(not from an image)");
  const auto line = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("      {:>9}: {}\n", name, printable(value));
  };
  line("digest", d.manifest_digest);
  line("version", d.version.empty() || d.timestamp == 0
                      ? d.version
                      : fmt::format("{} ({})", d.version, rfc3339(d.timestamp)));
  line("commit", fmt::format("{}.{}", d.checksum, d.serial));
  if (!d.signature_key.empty())
    line("signed by", fmt::format("{} under {}", d.signature_key, d.signature_rule));
  if (d.pinned) line("pinned", "yes");
  return text;
}

std::string event_text(const char* name, const std::optional<JournalEvent>& e) {
  if (!e) return "";
  return fmt::format("{}: {} {} {}{}\n", name, e->time, e->verb, e->result,
                     e->error.empty() ? "" : " — " + printable(e->error));
}

/// A held digest, and why it is when health decided that.
std::string held_text(const StatusFacts& f, const Held& h) {
  std::string text = fmt::format("Held: {} ({}, since {})\n", h.digest, h.reason, h.since);
  if (f.last_rollback && f.last_rollback->digest == h.digest && f.last_rollback->error.starts_with(h.reason)) {
    text += fmt::format("      {}\n", printable(f.last_rollback->error));
  }
  return text;
}

}  // namespace

std::string status_text(const StatusFacts& f) {
  std::string text;
  for (std::size_t i = 0; i < f.host.deployments.size(); ++i) {
    if (!f.booted_only || f.host.booted == i) text += deployment_text(f.host, i);
  }
  if (f.host.deployments.empty()) text = "There is no deployment here.\n";
  if (f.role) text += fmt::format("Role: {}\n", printable(*f.role));
  if (f.trial) {
    text += fmt::format("On trial: {} (since {}, {} start{} left)\n", f.trial->digest, f.trial->since, f.tries_left,
                        f.tries_left == 1 ? "" : "s");
  }
  for (const Held& h : f.held) text += held_text(f, h);
  text += event_text("Last attempt", f.last_attempt);
  text += event_text("Last finalize", f.last_finalize);
  for (const std::string& problem : f.host.problems) text += "Problem: " + problem + "\n";
  for (const std::string& warning : f.warnings) text += "Warning: " + warning + "\n";
  return text;
}

}  // namespace rasupd
