#include "verbs/status_document.hpp"

#include <nlohmann/json.hpp>

#include "base/text.hpp"

namespace rasupd {
namespace {

/// bootc's ImageReference: transport and name apart.
Json image_reference(const Reference& image) {
  Json json = {{"image", image.name()}, {"transport", transport_name(image.transport)}};
  json["signature"] = "containerPolicy";
  return json;
}

Json image_status(const Deployment& d) {
  if (!d.image || d.manifest_digest.empty()) return nullptr;
  return {{"image", image_reference(*d.image)},
          {"version", json_or_null(d.version)},
          {"timestamp", d.timestamp > 0 ? Json(rfc3339(d.timestamp)) : Json(nullptr)},
          {"imageDigest", d.manifest_digest},
          {"architecture", d.architecture}};
}

Json boot_entry(const Deployment& d) {
  return {{"image", image_status(d)},
          {"cachedUpdate", nullptr},
          {"incompatible", !d.image},
          {"pinned", d.pinned},
          {"softRebootCapable", false},
          {"downloadOnly", d.locked},
          {"store", d.image ? Json("ostreeContainer") : Json(nullptr)},
          {"ostree", {{"stateroot", d.stateroot}, {"checksum", d.checksum}, {"deploySerial", d.serial}}},
          {"composefs", nullptr}};
}

Json entry_at(const HostState& host, const std::optional<std::size_t>& index) {
  return index ? boot_entry(host.deployments[*index]) : Json(nullptr);
}

Json others(const HostState& host) {
  Json list = Json::array();
  for (std::size_t i = 0; i < host.deployments.size(); ++i) {
    const bool named =
        i == host.booted || i == host.staged || i == host.rollback || (!host.booted && i == host.first);
    if (!named) list.push_back(boot_entry(host.deployments[i]));
  }
  return list;
}

Json event_json(const std::optional<JournalEvent>& event, bool with_verb) {
  if (!event) return nullptr;
  Json json = {{"time", event->time}, {"result", event->result}, {"error", json_or_null(event->error)}};
  if (with_verb) json["verb"] = event->verb;
  return json;
}

Json signature_json(const Deployment& d) {
  if (d.signature_key.empty()) return nullptr;
  return {{"rule", d.signature_rule}, {"key", d.signature_key}, {"carrier", d.signature_carrier}};
}

Json entries_json(const HostState& host) {
  Json entries = Json::object();
  for (const Deployment& d : host.deployments) {
    entries[d.checksum] = {{"indexDigest", json_or_null(d.index_digest)},
                           {"version", json_or_null(d.version)},
                           {"signature", signature_json(d)},
                           {"composefs", nullptr}};
  }
  return entries;
}

bool reboot_required(const HostState& host) {
  return host.running && ((host.staged && !host.deployments[*host.staged].locked) || host.rollback_queued);
}

Json trial_json(const StatusFacts& f) {
  if (!f.trial) return nullptr;
  return {{"digest", f.trial->digest}, {"triesLeft", f.tries_left}};
}

Json rasupd_json(const StatusFacts& f) {
  Json held = Json::array();
  for (const Held& h : f.held)
    held.push_back({{"digest", h.digest}, {"reason", h.reason}, {"since", h.since}});
  return {{"bootId", json_or_null(f.boot_id.value_or(""))},
          {"architecture", json_or_null(f.architecture.value_or(""))},
          {"role", json_or_null(f.role.value_or(""))},
          {"default", entry_at(f.host, f.host.first)},
          {"trial", trial_json(f)},
          {"held", held},
          {"lastAttempt", event_json(f.last_attempt, true)},
          {"lastFinalize", event_json(f.last_finalize, false)},
          {"rebootRequired", reboot_required(f.host)},
          {"entries", entries_json(f.host)},
          {"problems", f.host.problems},
          {"warnings", f.warnings}};
}

Json frame() {
  return {{"apiVersion", "org.containers.bootc/v1"},
          {"kind", "BootcHost"},
          {"metadata", {{"name", "host"}}},
          {"spec", {{"image", nullptr}, {"bootOrder", "default"}}}};
}

}  // namespace

Json status_document(const StatusFacts& f) {
  Json document = frame();
  const HostState& host = f.host;
  const Deployment* tracked = host.staged ? &host.deployments[*host.staged] : host.current();
  if (tracked && tracked->image) document["spec"]["image"] = image_reference(*tracked->image);
  if (host.rollback_queued) document["spec"]["bootOrder"] = "rollback";
  document["status"] = {{"staged", f.booted_only ? Json(nullptr) : entry_at(host, host.staged)},
                        {"booted", entry_at(host, host.booted)},
                        {"rollback", f.booted_only ? Json(nullptr) : entry_at(host, host.rollback)},
                        {"otherDeployments", others(host)},
                        {"rollbackQueued", host.rollback_queued},
                        {"type", host.booted ? Json("bootcHost") : Json(nullptr)},
                        {"usrOverlay", nullptr},
                        {"rasupd", rasupd_json(f)}};
  return document;
}

std::string failed_status_document(const Error& error, int exit_code) {
  Json document = frame();
  document["status"] = nullptr;
  document["error"] = {{"kind", kind_name(error.kind)},
                       {"code", exit_code},
                       {"message", error.message},
                       {"hint", json_or_null(error.hint)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace rasupd
