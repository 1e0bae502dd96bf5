#include "deploy/origin.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "fence/keyfile.hpp"

namespace rasupd {
namespace {

constexpr const char* kGroup = "rasupd";
// Raised when a key's meaning changes; readers take what they know.
constexpr const char* kFormat = "1";

}  // namespace

std::string make_origin(const NewDeployment& what) {
  KeyFile file;
  file.set("origin", "container-image-reference", what.tracked.origin());
  file.set(kGroup, "format", kFormat);
  const auto set = [&file](const char* key, const std::string& value) {
    if (!value.empty()) file.set(kGroup, key, value);
  };
  set("manifest-digest", what.manifest_digest);
  set("index-digest", what.index_digest);
  set("signature-rule", what.signature_rule);
  set("signature-key", what.signature_key);
  set("signature-carrier", what.signature_carrier);
  return file.str();
}

std::string read_origin(const std::string& text, Deployment& deployment) {
  const auto file = KeyFile::parse(text, deployment.directory + ".origin");
  if (!file) return file.error().message;
  const auto get = [&file](const char* key) { return file->get(kGroup, key).value_or(""); };
  deployment.index_digest = get("index-digest");
  if (deployment.manifest_digest.empty()) deployment.manifest_digest = get("manifest-digest");
  deployment.signature_rule = get("signature-rule");
  deployment.signature_key = get("signature-key");
  deployment.signature_carrier = get("signature-carrier");
  // libostree reads a GKeyFile boolean: "true" and nothing else counts.
  deployment.pinned = file->get("libostree-transient", "pinned").value_or("") == "true";
  deployment.origin = file->get("origin", "container-image-reference").value_or("");
  if (deployment.origin.empty()) return {};
  auto image = Reference::parse_origin(deployment.origin);
  if (!image) return fmt::format("{}.origin: {}", deployment.directory, image.error().message);
  deployment.image = std::move(*image);
  return {};
}

}  // namespace rasupd
