// The image's config: what the image is for and what its layers are once unpacked (OCI image-spec config.md).

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "image/json_fields.hpp"

namespace rasupd {
namespace {

constexpr std::string_view kWhat = "config";
constexpr char kVersion[] = "org.opencontainers.image.version";
constexpr char kCreated[] = "org.opencontainers.image.created";

Result<std::map<std::string, std::string>> parse_labels(const Json& json) {
  const auto it = json.find("config");
  if (it == json.end() || it->is_null()) return std::map<std::string, std::string>{};
  if (!it->is_object()) return fail(Kind::Untrusted, "config: \"config\" is not an object");
  TRY(check_no_folded_names(*it, {"Labels"}, kWhat));
  return json_string_map(*it, "Labels", kWhat, Kind::Untrusted);
}

Result<std::vector<Digest>> parse_diff_ids(const Json& json) {
  const auto it = json.find("rootfs");
  if (it == json.end() || !it->is_object()) return fail(Kind::Untrusted, "config: \"rootfs\" is missing");
  TRY(check_no_folded_names(*it, {"type", "diff_ids"}, "config: rootfs"));
  const std::string type = TRY(json_string(*it, "type", "config: rootfs", Kind::Untrusted));
  if (type != "layers") {
    return fail(Kind::Untrusted, fmt::format("config: rootfs of type \"{}\"", printable(type, 80)));
  }
  const Json* list = TRY(json_array(*it, "diff_ids", "config: rootfs"));
  std::vector<Digest> diff_ids;
  for (const Json& entry : *list) {
    const std::string what = fmt::format("config: diff_id {}", diff_ids.size());
    if (!entry.is_string()) return fail(Kind::Untrusted, what + " is not a string");
    diff_ids.push_back(TRY(Digest::parse(entry.get_ref<const std::string&>()).within(what)));
  }
  return diff_ids;
}

}  // namespace

Result<ImageConfig> parse_config(std::string_view bytes) {
  const Json json = TRY(parse_json(bytes, kWhat, Kind::Untrusted, kMaxConfigBytes));
  if (!json.is_object()) return fail(Kind::Untrusted, "config: not an object");
  TRY(check_no_folded_names(json, {"os", "architecture", "variant", "created", "config", "rootfs"}, kWhat));
  ImageConfig config;
  config.os = TRY(json_string(json, "os", kWhat, Kind::Untrusted));
  config.architecture = TRY(json_string(json, "architecture", kWhat, Kind::Untrusted));
  config.variant = TRY(json_optional_string(json, "variant", kWhat, Kind::Untrusted)).value_or("");
  config.created = TRY(json_optional_string(json, "created", kWhat, Kind::Untrusted)).value_or("");
  config.labels = TRY(parse_labels(json));
  config.diff_ids = TRY(parse_diff_ids(json));
  return config;
}

Result<void> check_layers(const Manifest& manifest, const ImageConfig& config) {
  if (manifest.layers.size() == config.diff_ids.size()) return {};
  return fail(Kind::Untrusted, fmt::format("the manifest has {} layers, the config {} diff_ids",
                                           manifest.layers.size(), config.diff_ids.size()));
}

std::string image_version(const Manifest& manifest, const ImageConfig& config) {
  if (const auto it = manifest.annotations.find(kVersion); it != manifest.annotations.end())
    return it->second;
  if (const auto it = config.labels.find(kVersion); it != config.labels.end()) return it->second;
  return {};
}

std::int64_t image_timestamp(const Manifest& manifest, const ImageConfig& config) {
  if (const auto it = manifest.annotations.find(kCreated); it != manifest.annotations.end()) {
    if (const auto time = parse_rfc3339(it->second)) return *time;
  }
  return parse_rfc3339(config.created).value_or(0);
}

}  // namespace rasupd
