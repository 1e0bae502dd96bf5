#include "verbs/report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.hpp"

namespace rasupd {
namespace {

Json signature_of(const std::optional<policy::Accepted>& trust) {
  if (!trust || !trust->verified) return nullptr;
  return {
      {"rule", trust->rule}, {"key", trust->key}, {"carrier", trust->carrier}, {"subject", trust->subject}};
}

Json notes_of(const std::vector<EtcNote>& notes) {
  Json list = Json::array();
  for (const EtcNote& note : notes) list.push_back({{"path", "/etc/" + note.path}, {"what", note.what}});
  return list;
}

std::string named(const UpgradeReport& r) {
  return fmt::format("{}{}\n  digest: {}\n", r.reference.str(),
                     r.version.empty() ? "" : "  (version " + r.version + ")", r.digest);
}

std::string signed_line(const std::optional<policy::Accepted>& trust) {
  if (!trust) return "";
  if (!trust->verified) return fmt::format("  signature: not verified (allowed for scope {})\n", trust->rule);
  return fmt::format("  signature: {} by {} under {}\n", trust->carrier, trust->key, trust->rule);
}

std::string layer_line(const UpgradeReport& r) {
  return fmt::format("layers already present: {}; layers needed: {} ({})\n", r.layers_present,
                     r.layers_needed, human_size(r.bytes_needed));
}

std::string told_check(const UpgradeReport& r) {
  if (!r.held.empty()) return fmt::format("Held: {} is not taken on this machine ({})\n", r.digest, r.held);
  if (!r.update_available) return "No update available: " + named(r);
  return "Update available: " + named(r) + signed_line(r.trust) + layer_line(r);
}

std::string told(const UpgradeReport& r) {
  if (!r.changed) return "No changes: " + named(r);
  std::string text = layer_line(r);
  text += (r.staged ? "Staged for the next boot: " : "Deployed, first at the next boot: ") + named(r) +
          signed_line(r.trust);
  if (r.locked)
    text += "  held back: a reboot keeps today's image until `rasupd upgrade --from-downloaded`\n";
  for (const EtcNote& note : r.etc_notes)
    text += fmt::format("  /etc/{}: {}\n", printable(note.path), note.what);
  if (r.rebooting) text += "Rebooting.\n";
  return text;
}

}  // namespace

Answer answer_of(const UpgradeReport& r, bool check, bool unchanged_77) {
  Answer answer;
  answer.changed = r.changed;
  answer.fields = std::make_shared<Json>(Json{
      {"image", r.reference.str()},
      {"digest", json_or_null(r.digest)},
      {"indexDigest", json_or_null(r.index_digest)},
      {"version", json_or_null(r.version)},
      {"architecture", json_or_null(r.architecture)},
      {"layers",
       {{"present", r.layers_present}, {"needed", r.layers_needed}, {"bytesNeeded", r.bytes_needed}}},
      {"bytesFetched", r.bytes_fetched},
      {"signature", signature_of(r.trust)},
      {"staged", r.staged},
      {"downloadOnly", r.locked},
      {"rebooting", r.rebooting},
      {"etc", {{"notes", notes_of(r.etc_notes)}}},
      {"warnings", r.warnings},
  });
  if (check) {
    (*answer.fields)["updateAvailable"] = r.update_available;
    (*answer.fields)["held"] = json_or_null(r.held);
  }
  answer.human = check ? told_check(r) : told(r);
  const bool nothing = check ? !r.update_available : !r.changed;
  if (unchanged_77 && nothing) answer.exit_code = kUnchangedExit;
  return answer;
}

}  // namespace rasupd
