#include "deploy/image_facts.hpp"

#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/text.hpp"
#include "fence/sysroot.hpp"

namespace rasupd {
namespace {

// What the importer stored was capped at 4 MiB each.
constexpr std::size_t kMaxDocument = 4u << 20;

Json parse(const std::string& text) {
  if (text.empty()) return Json::object();
  auto json = parse_json(text, "stored image document", Kind::Failed, kMaxDocument);
  return json && json->is_object() ? std::move(*json) : Json::object();
}

std::string member(const Json& node, const char* key) {
  const auto found = node.is_object() ? node.find(key) : node.end();
  return node.is_object() && found != node.end() && found->is_string() ? found->get<std::string>() : "";
}

Json child(const Json& node, const char* key) {
  return node.is_object() && node.contains(key) ? node.at(key) : Json::object();
}

}  // namespace

std::string config_architecture(const std::string& config) {
  return member(parse(config), "architecture");
}

void read_image_facts(const std::string& repo, Deployment& deployment) {
  const auto facts = read_commit_facts(repo, deployment.checksum);
  if (!facts || !*facts) return;
  const Json config = parse((*facts)->config);
  const Json annotations = child(parse((*facts)->manifest), "annotations");
  const Json labels = child(child(config, "config"), "Labels");
  deployment.manifest_digest = (*facts)->manifest_digest;
  deployment.architecture = member(config, "architecture");
  deployment.version = member(annotations, "org.opencontainers.image.version");
  if (deployment.version.empty()) deployment.version = member(labels, "org.opencontainers.image.version");
  if (deployment.version.empty()) deployment.version = (*facts)->version;
  std::string created = member(annotations, "org.opencontainers.image.created");
  if (created.empty()) created = member(config, "created");
  deployment.timestamp = parse_rfc3339(created).value_or((*facts)->timestamp);
}

}  // namespace rasupd
