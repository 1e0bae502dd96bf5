#include "source/source.hpp"

#include <fmt/format.h>

#include <memory>
#include <variant>

#include "base/text.hpp"
#include "config/settings.hpp"
#include "source/oci_layout.hpp"
#include "source/registries.hpp"
#include "source/registry.hpp"
#include "source/verify.hpp"

namespace rasupd {
namespace {

using RegistryPtr = std::shared_ptr<Registry>;

/// The tag of a reference or of a signature; nothing else may become part of a URL (distribution-spec,
/// "Pulling manifests").
bool is_url_tag(const std::string& tag) {
  constexpr std::string_view kFirst = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  if (tag.empty() || tag.size() > 128 || kFirst.find(tag.front()) == std::string_view::npos) return false;
  return tag.find_first_not_of(std::string(kFirst) + ".-") == std::string::npos;
}

Result<Document> required(Result<std::optional<Document>> found, const std::string& name) {
  auto document = TRY(std::move(found));
  if (!document) return fail(Kind::NotFound, name + ": no such repository, tag or digest in the registry");
  return std::move(*document);
}

Result<Document> by_digest(Registry& registry, const Digest& digest) {
  return required(registry.manifest(digest.str(), &digest), registry.name() + "@" + digest.str());
}

Result<std::optional<Document>> by_tag(Registry& registry, const std::string& tag) {
  if (!is_url_tag(tag)) return fail(Kind::Usage, "not a tag: " + printable(tag, 140));
  return registry.manifest(tag, nullptr);
}

}  // namespace

struct Source::Body {
  Reference reference;
  std::variant<RegistryPtr, OciLayout> from;

  OciLayout* layout() { return std::get_if<OciLayout>(&from); }
  Registry& registry() { return *std::get<RegistryPtr>(from); }
};

Source::Source(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Source::~Source() = default;
Source::Source(Source&&) noexcept = default;
Source& Source::operator=(Source&&) noexcept = default;

Result<Source> Source::with_layout(const Reference& reference, Result<OciLayout> opened) {
  OciLayout layout = TRY(std::move(opened));
  return Source(std::make_unique<Body>(Body{reference, std::move(layout)}));
}

Result<Source> Source::open(const World& world, const Reference& reference, const Settings& settings) {
  switch (reference.transport) {
    case Transport::oci:
      return with_layout(reference, open_oci_directory(world, reference));
    case Transport::oci_archive:
      return with_layout(reference, open_oci_archive(world, reference));
    case Transport::registry:
      break;
  }
  const auto registries = TRY(Registries::load(world.config_root));
  const auto endpoints = TRY(registries.endpoints(reference));
  auto registry = TRY(Registry::open(world, endpoints.back(), settings));
  return Source(std::make_unique<Body>(Body{reference, std::move(registry)}));
}

Result<Document> Source::resolve() {
  if (auto* layout = body_->layout()) return layout->resolve();
  const Reference& reference = body_->reference;
  if (reference.digest) return by_digest(body_->registry(), *reference.digest);
  const std::string tag = reference.tag.value_or("latest");
  return required(by_tag(body_->registry(), tag), body_->registry().name() + ":" + tag);
}

Result<Document> Source::manifest(const Digest& digest) {
  if (auto* layout = body_->layout()) return layout->manifest(digest, nullptr);
  return by_digest(body_->registry(), digest);
}

Result<Document> Source::manifest(const Descriptor& descriptor) {
  if (auto* layout = body_->layout()) return layout->manifest(descriptor.digest, &descriptor);
  const std::string name = body_->registry().name() + "@" + descriptor.digest.str();
  if (descriptor.size > kMaxManifestBytes)
    return fail(Kind::Untrusted, name + ": the index says it is larger than 4 MiB");
  auto document = TRY(by_digest(body_->registry(), descriptor.digest));
  if (document.bytes.size() != descriptor.size)
    return fail(Kind::Untrusted, fmt::format("{} is not what the index names: {} bytes instead of {}", name,
                                             document.bytes.size(), descriptor.size));
  if (document.media_type != descriptor.media_type)
    return fail(Kind::Untrusted, fmt::format("{} comes as {}, the index names {}", name, document.media_type,
                                             printable(descriptor.media_type, 100)));
  return document;
}

Result<std::optional<Document>> Source::tagged(const std::string& tag) {
  if (auto* layout = body_->layout()) return layout->tagged(tag);
  return by_tag(body_->registry(), tag);
}

Result<std::string> Source::small_blob(const Descriptor& descriptor, std::size_t max_bytes) {
  if (descriptor.size > max_bytes)
    return fail(Kind::Untrusted, fmt::format("blob {} is {} bytes, more than the {} allowed",
                                             descriptor.digest.str(), descriptor.size, max_bytes));
  const Reader reader = TRY(blob(descriptor));
  std::string all;
  std::byte chunk[16384];
  for (;;) {
    const std::size_t n = TRY(reader(chunk));
    if (n == 0) return all;
    all.append(reinterpret_cast<const char*>(chunk), n);
  }
}

Result<Reader> Source::blob(const Descriptor& descriptor) {
  if (auto* layout = body_->layout()) return layout->blob(descriptor);
  Registry& registry = body_->registry();
  return verified(registry.blob(descriptor), descriptor,
                  registry.name() + ": blob " + descriptor.digest.str());
}

std::uint64_t Source::bytes_fetched() const {
  if (auto* layout = body_->layout()) return layout->bytes_fetched();
  return body_->registry().bytes_fetched();
}

}  // namespace rasupd
