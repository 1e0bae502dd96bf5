#include "image/manifest.hpp"

#include <gmock/gmock.h>

#include "base/text.hpp"
#include "image/platform.hpp"
#include "support/fixture.hpp"

namespace rasupd {
namespace {

using test::FailsWith;
using test::fixture;
using test::Succeeds;
using testing::HasSubstr;

constexpr char kBlobs[] = "signing/image/oci-layout-1.0/blobs/sha256/";
constexpr char kIndexHex[] = "69f2fc1ecb6f27444a44a4558dede10304c683791cc8ba025818795633ba09e9";
constexpr char kAmd64Hex[] = "63b741855d03d8df63ef59cb6cc70b81f75af045fda9e3b7513e03c380ac63c6";
constexpr char kArm64Hex[] = "0ff2e687f484161dcc958615fc5d76caddfba9e1da32b563e9ae9c799d36f6de";

std::string good() {
  return fixture("signing/negative-images/ok.manifest.json");
}

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Manifest, ARealImageIsRead) {
  const std::string bytes = fixture(std::string(kBlobs) + kIndexHex);
  EXPECT_TRUE(*is_index(bytes, kOciIndex));
  const auto index = parse_index(bytes, kOciIndex);
  ASSERT_THAT(index, Succeeds());
  EXPECT_EQ(select_platform(*index, "amd64")->digest.hex(), kAmd64Hex);
  EXPECT_EQ(select_platform(*index, "arm64")->digest.hex(), kArm64Hex);
  const auto manifest = parse_manifest(fixture(std::string(kBlobs) + kAmd64Hex), kOciManifest);
  ASSERT_THAT(manifest, Succeeds());
  EXPECT_EQ(manifest->annotations.at("org.opencontainers.image.version"), "1.0");
  const auto config = parse_config(fixture(kBlobs + manifest->config.digest.hex()));
  ASSERT_THAT(config, Succeeds());
  EXPECT_THAT(check_platform(*config, "amd64"), Succeeds());
  EXPECT_THAT(check_platform(*config, "arm64"), FailsWith(Kind::Unsuitable, "linux/amd64"));
  EXPECT_THAT(check_layers(*manifest, *config), Succeeds());
  EXPECT_EQ(image_version(*manifest, *config), "1.0");
}

/// Columns as in oracle.tsv: what podman did, so that where we are stricter stays a decision (R118).
struct Lie {
  const char* name;
  const char* refused;  ///< empty: not seen from the manifest alone; the bytes tell later
  bool podman_accepts;
};

constexpr Lie kLies[] = {
    {"ok", "", true},
    {"ambiguous", "at once", false},
    {"trailing", "not valid JSON", false},
    {"layer-mt-unknown", "unknown layer type", true},
    {"idx-nested", "not an image manifest", false},
    {"idx-arch-lie", "", true},
    {"idx-size-wrong", "", true},
    {"idx-two-match", "", true},
    {"layer-mt-lies-tar", "", true},
    {"layer-size-plus1", "", true},
    {"diffid-mismatch", "", false},
    {"gzip-trailing-garbage", "", false},
    {"url-on-normal-layer", "", false},
};

Result<void> read_any(const std::string& bytes) {
  if (TRY(is_index(bytes, ""))) {
    const Index index = TRY(parse_index(bytes, kOciIndex));
    TRY(select_platform(index, "amd64"));
    return {};
  }
  TRY(parse_manifest(bytes, kOciManifest));
  return {};
}

TEST(Manifest, RecordedLies) {
  const std::string oracle = fixture("signing/negative-images/oracle.tsv");
  for (const Lie& lie : kLies) {
    const auto read =
        read_any(fixture(std::string("signing/negative-images/") + lie.name + ".manifest.json"));
    if (*lie.refused == '\0') {
      EXPECT_THAT(read, Succeeds()) << lie.name;
    } else {
      EXPECT_THAT(read, FailsWith(Kind::Untrusted, lie.refused)) << lie.name;
    }
    EXPECT_EQ(oracle.find(std::string(lie.name) + "\tpodman5.4: ACCEPT") != std::string::npos,
              lie.podman_accepts)
        << lie.name;
  }
}

TEST(Manifest, LiesOfADocument) {
  const std::string layers = R"("layers":)",
                    type = R"("mediaType":"application/vnd.oci.image.manifest.v1+json")";
  const std::pair<std::string, const char*> cases[] = {
      {changed(good(), layers, R"("Layers":)"), "Layers"},
      {changed(good(), layers, R"("layerſ":)"), "passes for"},
      {changed(good(), layers, R"("LAYERS":[],"layers":)"), "passes for"},
      {changed(good(), layers, R"("layers":[],"layers":)"), "duplicate key"},
      {changed(good(), R"("digest":)", R"("Digest":"x","digest":)"), "passes for"},
      {changed(good(), R"("schemaVersion":2)", R"("schemaVersion":1)"), "schema version 1"},
      {changed(good(), R"("schemaVersion":2)", R"("schemaVersion":2,"fsLayers":[])"), "schema 1"},
      {changed(good(), R"("schemaVersion":2,)", ""), "schemaVersion"},
      {changed(good(), type, R"("mediaType":"application/vnd.oci.image.index.v1+json")"), "calls itself"},
      {changed(good(), type, R"("mediaType":1)"), "not a string"},
      {changed(good(), R"("size":120)", R"("size":"120")"), "whole number"},
      {changed(good(), R"("size":120)", R"("size":-1)"), "whole number"},
      {changed(good(), R"("size":120)", R"("size":120.0)"), "whole number"},
      {changed(good(), R"("size":120)", R"("size":9223372036854775808)"), "beyond reason"},
      {changed(good(), "sha256:3cb0", "sha256:3CB0"), "not a digest"},
      {changed(good(), "sha256:3cb0", "sha512:3cb0"), "not a digest"},
      {changed(good(), "image.config.v1", "image.other.v1"), "not an image"},
      {changed(good(), "image.layer.v1.tar+gzip", "image.layer.nondistributable.v1.tar+gzip"),
       "non-distributable"},
      {changed(good(), "image.layer.v1.tar+gzip", "image.layer.v1.tar+gzip+encrypted"), "unknown layer type"},
  };
  for (const auto& [bytes, why] : cases) {
    EXPECT_THAT(parse_manifest(bytes, kOciManifest), FailsWith(Kind::Untrusted, why)) << bytes;
  }
  const std::string config_only = good().substr(0, good().find(",\"layers\"")) + "}";
  EXPECT_THAT(parse_manifest(config_only, kOciManifest), FailsWith(Kind::Untrusted, "\"layers\" is missing"));
  EXPECT_THAT(parse_manifest("{\"schemaVersion\":2}", ""), FailsWith(Kind::Untrusted, "neither"));
  EXPECT_THAT(parse_manifest(good(), kOciIndex), FailsWith(Kind::Untrusted, "calls itself"));
  EXPECT_THAT(parse_manifest(good(), "text/html"), FailsWith(Kind::Untrusted, "calls itself"));
  EXPECT_THAT(parse_index(good(), kOciManifest), FailsWith(Kind::Untrusted, "index was expected"));
  EXPECT_THAT(parse_manifest(std::string(kMaxManifestBytes + 1, ' '), ""),
              FailsWith(Kind::Untrusted, "more than"));
}

TEST(Manifest, WhatMayBeMissingOrUnknown) {
  const std::string type = R"("mediaType":"application/vnd.oci.image.manifest.v1+json",)";
  EXPECT_EQ(parse_manifest(changed(good(), type, ""), "")->media_type, kOciManifest);
  EXPECT_EQ(parse_manifest(changed(good(), type, ""), kDockerManifest)->media_type, kDockerManifest);
  EXPECT_THAT(parse_manifest(changed(good(), type, type + R"("x":{"Layers":1},)"), kOciManifest), Succeeds());
  EXPECT_THAT(parse_manifest(fixture("signing/cosign25-tag/index.sigmanifest.json"), kOciManifest),
              FailsWith(Kind::Untrusted, "unknown layer type"));
  EXPECT_EQ(parse_artifact_manifest(fixture("signing/cosign25-tag/index.sigmanifest.json"), kOciManifest)
                ->layers.size(),
            1u);
}

TEST(Manifest, LayersAreCounted) {
  const std::string layer = good().substr(good().find("[{") + 1, good().find("}]") - good().find("[{"));
  const auto with = [&](std::size_t n) {
    std::string layers;
    for (std::size_t i = 0; i < n; ++i) layers += (i ? "," : "") + layer;
    return changed(good(), "[" + layer + "]", "[" + layers + "]");
  };
  EXPECT_EQ(parse_manifest(with(kMaxLayers), kOciManifest)->layers.size(), kMaxLayers);
  EXPECT_THAT(parse_manifest(with(kMaxLayers + 1), kOciManifest), FailsWith(Kind::Untrusted, "513 layers"));
  EXPECT_THAT(parse_manifest(with(0), kOciManifest), FailsWith(Kind::Untrusted, "without layers"));
  const auto manifest = parse_manifest(with(2), kOciManifest);
  ImageConfig config;
  for (std::size_t n = 0; n < 4; ++n, config.diff_ids.emplace_back()) {
    EXPECT_EQ(check_layers(*manifest, config).has_value(), n == 2) << n;  // podman takes one too many
  }
}

TEST(Manifest, LayerTypes) {
  EXPECT_EQ(*layer_compression("application/vnd.oci.image.layer.v1.tar"), Compression::none);
  EXPECT_EQ(*layer_compression("application/vnd.oci.image.layer.v1.tar+gzip"), Compression::gzip);
  EXPECT_EQ(*layer_compression("application/vnd.oci.image.layer.v1.tar+zstd"), Compression::zstd);
  EXPECT_EQ(*layer_compression("application/vnd.docker.image.rootfs.diff.tar"), Compression::none);
  EXPECT_EQ(*layer_compression("application/vnd.docker.image.rootfs.diff.tar.gzip"), Compression::gzip);
  EXPECT_EQ(*layer_compression("application/vnd.docker.image.rootfs.diff.tar.zstd"), Compression::zstd);
  EXPECT_THAT(layer_compression("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"),
              FailsWith(Kind::Untrusted, "non-distributable"));
}

TEST(Config, StrictAndUseful) {
  const std::string config =
      R"({"os":"linux","architecture":"arm64","variant":"v8","created":"2026-01-02T03:04:05Z",
    "config":{"Labels":{"org.opencontainers.image.version":"7"}},"rootfs":{"type":"layers","diff_ids":["sha256:)" +
      std::string(64, 'b') + R"("]},"history":[]})";
  const auto read = parse_config(config);
  ASSERT_THAT(read, Succeeds());
  EXPECT_EQ(read->variant, "v8");
  EXPECT_EQ(read->diff_ids.at(0).hex(), std::string(64, 'b'));
  Manifest manifest;
  EXPECT_EQ(image_version(manifest, *read), "7");
  EXPECT_EQ(rfc3339(image_timestamp(manifest, *read)), "2026-01-02T03:04:05Z");
  manifest.annotations = {{"org.opencontainers.image.version", "8"},
                          {"org.opencontainers.image.created", "2026-02-02T03:04:05Z"}};
  EXPECT_EQ(image_version(manifest, *read), "8");
  EXPECT_EQ(rfc3339(image_timestamp(manifest, *read)), "2026-02-02T03:04:05Z");
  EXPECT_EQ(image_timestamp({}, {}), 0);
  EXPECT_EQ(image_version({}, {}), "");
  for (const auto& [from, to] : {std::pair{R"("os")", R"("OS")"},
                                 {R"("layers")", R"("x")"},
                                 {"diff_ids", "Diff_ids"},
                                 {R"("Labels":{)", R"("labels":{},"Labels":{)"},
                                 {"sha256:", "sha512:"},
                                 {R"("arm64")", "1"},
                                 {R"("7")", "7"}}) {
    EXPECT_THAT(parse_config(changed(config, from, to)), FailsWith(Kind::Untrusted, "config")) << from;
  }
  EXPECT_THAT(parse_config("[]"), FailsWith(Kind::Untrusted, "not an object"));
}

/// An index of entries written OS/ARCH[/VARIANT], or "" for an entry without a platform.
Index offering(const std::vector<std::string>& platforms) {
  Index index;
  for (std::size_t i = 0; i < platforms.size(); ++i) {
    Descriptor entry;
    entry.media_type = kOciManifest;
    entry.size = i;
    if (!platforms[i].empty()) {
      auto parts = split(platforms[i], '/');
      parts.resize(3);
      entry.platform = Platform{parts[0], parts[1], parts[2]};
    }
    index.manifests.push_back(entry);
  }
  return index;
}

TEST(Platform, SelectsByVariantOrder) {
  const auto chosen = [](const std::vector<std::string>& offer, const char* arch) -> int {
    const auto entry = select_platform(offering(offer), arch);
    return entry ? static_cast<int>(entry->size) : -1;
  };
  EXPECT_EQ(chosen({"linux/arm64", "linux/amd64"}, "amd64"), 1);
  EXPECT_EQ(chosen({"linux/amd64", "linux/amd64"}, "amd64"), 0);
  EXPECT_EQ(chosen({"linux/arm64", "linux/arm64/v8"}, "arm64"), 1);
  EXPECT_EQ(chosen({"linux/arm64"}, "arm64"), 0);
  EXPECT_EQ(chosen({"linux/arm64/v9"}, "arm64"), -1);
  EXPECT_EQ(chosen({"linux/amd64/v3"}, "amd64"), -1);
  EXPECT_EQ(chosen({"linux/amd64/v3", "linux/amd64/v1"}, "amd64"), 1);
  EXPECT_EQ(chosen({"linux/arm/v6", "linux/arm/v8", "linux/arm/v7"}, "arm"), 2);
  EXPECT_EQ(chosen({"windows/amd64"}, "amd64"), -1);
  EXPECT_EQ(chosen({"unknown/unknown", ""}, "amd64"), 1);
  EXPECT_EQ(chosen({""}, "amd64"), 0);
  EXPECT_EQ(chosen({"", "linux/arm64"}, "amd64"), -1);
  EXPECT_EQ(chosen({"", ""}, "amd64"), -1);
  EXPECT_EQ(chosen({}, "amd64"), -1);
}

TEST(Platform, SaysWhatIsOffered) {
  const auto refused =
      select_platform(offering({"linux/amd64", "linux/arm64/v8", "unknown/unknown"}), "riscv64");
  ASSERT_THAT(refused, FailsWith(Kind::Unsuitable, "linux/amd64, linux/arm64/v8"));
  EXPECT_EQ(refused.error().message.find("unknown"), std::string::npos);
}

TEST(Platform, MachinesAreKnownOrRefused) {
  EXPECT_EQ(*architecture_of_machine("x86_64"), "amd64");
  EXPECT_EQ(*architecture_of_machine("aarch64"), "arm64");
  EXPECT_EQ(*architecture_of_machine("armv7l"), "arm");
  EXPECT_EQ(*architecture_of_machine("riscv64"), "riscv64");
  for (const char* unknown : {"", "armv6l", "sparc64", "amd64"}) {
    EXPECT_THAT(architecture_of_machine(unknown), FailsWith(Kind::Unsuitable, "not known")) << unknown;
  }
}

TEST(Platform, ConfigMustBeForThisMachine) {
  ImageConfig config;
  config.os = "linux";
  config.architecture = "arm64";
  EXPECT_THAT(check_platform(config, "arm64"), Succeeds());
  EXPECT_THAT(check_platform(config, "amd64"), FailsWith(Kind::Unsuitable, "this machine is linux/amd64"));
  config.os = "windows";
  EXPECT_THAT(check_platform(config, "arm64"), FailsWith(Kind::Unsuitable, "windows"));
}

}  // namespace
}  // namespace rasupd
