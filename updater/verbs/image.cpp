#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/text.hpp"
#include "image/platform.hpp"
#include "import/import.hpp"
#include "source/source.hpp"
#include "upgrade/trust.hpp"
#include "verbs/verb.hpp"

namespace rasupd {
namespace {

struct Options {
  std::string reference, architecture;
};

/// A reference, where its image comes from, and the manifest found there.
struct Looked {
  Settings settings;
  Source source;
  ResolvedImage image;
  Json fields;
};

Result<Looked> look_at(const World& world, const Options& options) {
  Settings settings = TRY(load_settings(world.config_root, true));
  const Reference reference = TRY(reference_argument(options.reference));
  Source source = TRY(Source::open(world, reference, settings));
  std::string architecture = options.architecture;
  if (architecture.empty()) architecture = TRY(host_architecture());
  ResolvedImage image = TRY(resolve_image(source, reference, std::nullopt, architecture));
  Json fields = {{"image", reference.str()},
                 {"digest", image.document.digest.str()},
                 {"indexDigest", image.index ? Json(image.index->digest.str()) : Json(nullptr)}};
  return Looked{std::move(settings), std::move(source), std::move(image), std::move(fields)};
}

Json layers_json(const Manifest& manifest, std::uint64_t& total) {
  Json layers = Json::array();
  for (const Descriptor& layer : manifest.layers) {
    layers.push_back({{"digest", layer.digest.str()}, {"mediaType", layer.media_type}, {"size", layer.size}});
    total += layer.size;
  }
  return layers;
}

Result<Answer> run_inspect(const World& world, const Options& options) {
  Looked looked = TRY(look_at(world, options));
  const ConfigDocument config = TRY(fetch_config(looked.source, looked.image.manifest));
  std::uint64_t total = 0;
  const Json layers = layers_json(looked.image.manifest, total);
  const std::string version = image_version(looked.image.manifest, config.config);
  const std::int64_t created = image_timestamp(looked.image.manifest, config.config);
  const bool bootable = check_bootable_label(config.config).has_value();
  looked.fields.update({{"verification", "unverified"},
                        {"architecture", config.config.architecture},
                        {"os", config.config.os},
                        {"version", version.empty() ? Json(nullptr) : Json(version)},
                        {"created", created > 0 ? Json(rfc3339(created)) : Json(nullptr)},
                        {"labels", config.config.labels},
                        {"bootable", bootable},
                        {"layers", layers},
                        {"bytes", total}});
  Answer answer;
  answer.human = fmt::format(
      "{} (unverified)\n  digest: {}\n  platform: {}/{}\n  version: {}\n  layers: {} ({})\n  bootable: {}\n",
      looked.image.reference.str(), looked.image.document.digest.str(), printable(config.config.os),
      printable(config.config.architecture), version.empty() ? "none" : printable(version),
      looked.image.manifest.layers.size(), human_size(total), bootable ? "yes" : "no");
  answer.fields = std::make_shared<Json>(std::move(looked.fields));
  return answer;
}

Result<Answer> run_verify(const World& world, const Options& options) {
  Looked looked = TRY(look_at(world, options));
  const policy::Accepted accepted =
      TRY(verify_image(world, looked.settings, looked.source, looked.image, std::nullopt));
  looked.fields["verification"] = accepted.verified ? "verified" : "unverified";
  looked.fields["signature"] = {{"rule", accepted.rule},
                                {"key", accepted.key},
                                {"carrier", accepted.carrier},
                                {"subject", accepted.subject}};
  Answer answer;
  answer.human =
      accepted.verified
          ? fmt::format("verified: {}\n  rule: {}\n  key: {}\n  carrier: {}\n", accepted.subject,
                        accepted.rule, accepted.key, accepted.carrier)
          : fmt::format("unverified: allowed for scope {} by [trust] unverified_scopes\n", accepted.rule);
  answer.fields = std::make_shared<Json>(std::move(looked.fields));
  return answer;
}

Result<Answer> run_list(const World& world) {
  const std::string path = path_join(world.sysroot, "ostree/repo");
  Json list = Json::array();
  Answer answer;
  if (exists(path)) {
    const Repo repo = TRY(Repo::open(path));
    for (const StoredImage& image : TRY(list_images(repo))) {
      list.push_back({{"image", image.ref_key},
                      {"digest", image.manifest_digest},
                      {"checksum", image.commit},
                      {"layers", image.layers},
                      {"bytes", image.bytes}});
      answer.human += fmt::format("{}\n  {}  {} layers, {}\n", image.ref_key, image.manifest_digest,
                                  image.layers, human_size(image.bytes));
    }
  }
  if (list.empty()) answer.human = "No images are stored.\n";
  answer.fields = std::make_shared<Json>(Json{{"images", list}});
  return answer;
}

CLI::App* add_reference_verb(CLI::App& image, const char* name, const char* what, Options& options) {
  auto* verb = image.add_subcommand(name, what);
  verb->fallthrough();
  verb->add_option("REF", options.reference,
                   "HOST/REPO[:TAG][@DIGEST], oci:PATH[:TAG] or oci-archive:PATH[:TAG]")
      ->required();
  verb->add_option("--arch", options.architecture, "Look at this architecture's image");
  return verb;
}

}  // namespace

void add_image(CLI::App& app, Selected& selected) {
  auto* image = app.add_subcommand("image", "Look at images");
  image->fallthrough();
  image->require_subcommand(1);
  auto options = std::make_shared<Options>();
  add_reference_verb(*image, "inspect", "Manifest, platform, size; needs no policy", *options)
      ->callback([options, &selected] {
        selected.kind = "ImageInspectResult";
        selected.needs_sysroot = false;
        selected.run = [options](const World& world) { return run_inspect(world, *options); };
      });
  add_reference_verb(*image, "verify", "Which signature passed under which rule, or which check failed",
                     *options)
      ->callback([options, &selected] {
        selected.kind = "ImageVerifyResult";
        selected.needs_sysroot = false;
        selected.run = [options](const World& world) { return run_verify(world, *options); };
      });
  auto* list = image->add_subcommand("list", "What is stored on this machine");
  list->fallthrough();
  list->callback([&selected] {
    selected.kind = "ImageListResult";
    selected.run = run_list;
  });
}

}  // namespace rasupd
