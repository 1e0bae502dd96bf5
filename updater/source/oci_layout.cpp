#include "source/oci_layout.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "source/verify.hpp"

namespace rasupd {
namespace {

/// image-spec, annotations.md: in an index.json this is the tag.
constexpr std::string_view kRefName = "org.opencontainers.image.ref.name";

Reader read_extent(Extent extent, std::shared_ptr<std::atomic<std::uint64_t>> bytes, const World& world,
                   std::string what) {
  auto at = std::make_shared<std::uint64_t>(0);
  return [extent = std::move(extent), bytes = std::move(bytes), &world, what = std::move(what),
          at](std::span<std::byte> into) -> Result<std::size_t> {
    TRY(world.check_stop());
    const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), extent.size - *at));
    if (want == 0) return 0;
    const ssize_t n = ::pread(extent.file->get(), into.data(), want, static_cast<off_t>(extent.offset + *at));
    if (n < 0) return fail_errno(errno, "reading " + what);
    if (n == 0) return fail(Kind::Untrusted, what + ": it became shorter while it was read");
    *at += static_cast<std::uint64_t>(n);
    *bytes += static_cast<std::uint64_t>(n);
    return static_cast<std::size_t>(n);
  };
}

std::string blob_path(const Digest& digest) {
  return "blobs/sha256/" + digest.hex();
}

std::string ref_name(const Descriptor& descriptor) {
  const auto found = descriptor.annotations.find(std::string(kRefName));
  return found == descriptor.annotations.end() ? "" : found->second;
}

/// Names of cosign's tag scheme ("sha256-<hex>.sig") and of the referrers fallback: attachments, not images.
bool is_attachment(const Descriptor& descriptor) {
  const std::string name = ref_name(descriptor);
  return name.starts_with("sha256-") && name.size() >= 71 && from_hex(std::string_view(name).substr(7, 64));
}

/// The media type a verified document gives itself; empty when it does not.
std::string embedded_type(const std::string& bytes) {
  const auto json = parse_json(bytes, "manifest", Kind::Untrusted, kMaxManifestBytes);
  if (!json || !json->is_object()) return {};
  const auto found = json->find("mediaType");
  return found != json->end() && found->is_string() ? found->get<std::string>() : std::string();
}

Result<std::optional<Extent>> open_in(const Fd& root, const std::string& base, const std::string& path) {
  struct stat info {};
  if (::fstatat(root.get(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 &&
      (errno == ENOENT || errno == ENOTDIR))
    return std::optional<Extent>{};
  auto file = open_beneath(root.get(), path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file) {
    file.error().kind = Kind::Untrusted;
    return fail(std::move(file.error()).within(base));
  }
  if (::fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode))
    return fail(Kind::Untrusted, fmt::format("{}: {} is not a regular file", base, path));
  return std::optional(
      Extent{std::make_shared<Fd>(std::move(*file)), 0, static_cast<std::uint64_t>(info.st_size)});
}

}  // namespace

Result<std::optional<std::string>> OciLayout::read_whole(const std::string& path,
                                                         std::size_t max_bytes) const {
  const auto extent = TRY(files_(path));
  if (!extent) return std::optional<std::string>{};
  if (extent->size > max_bytes)
    return fail(Kind::Untrusted,
                fmt::format("{}: {} is larger than {} bytes", reference_.path, path, max_bytes));
  std::string text(extent->size, '\0');
  const Reader reader = read_extent(*extent, bytes_, *world_, reference_.path + ": " + path);
  std::size_t at = 0;
  while (at < text.size())
    at += TRY(reader({reinterpret_cast<std::byte*>(text.data()) + at, text.size() - at}));
  return std::optional(std::move(text));
}

Result<void> OciLayout::read_index() {
  const auto marker = TRY(read_whole("oci-layout", 4096));
  const auto index = TRY(read_whole("index.json", kMaxManifestBytes));
  if (!marker || !index)
    return fail(Kind::NotFound, fmt::format("{}: no OCI layout there ({} is missing)", reference_.path,
                                            marker ? "index.json" : "oci-layout"));
  const std::string what = reference_.path + ": oci-layout";
  const auto json = TRY(parse_json(*marker, what, Kind::Untrusted, 4096));
  const auto version = TRY(json_string(json, "imageLayoutVersion", what, Kind::Untrusted));
  if (version != "1.0.0") return fail(Kind::Untrusted, what + ": unknown version " + printable(version, 40));
  index_ = TRY(parse_index(*index, kOciIndex).within(reference_.path + ": index.json"));
  return {};
}

Result<OciLayout> OciLayout::open(const World& world, const Reference& reference, LayoutFiles files) {
  OciLayout layout(world, reference, std::move(files));
  TRY(layout.read_index());
  return layout;
}

Result<std::optional<Descriptor>> OciLayout::find(const std::string& tag) const {
  std::optional<Descriptor> found;
  for (const auto& entry : index_.manifests) {
    if (ref_name(entry) != tag) continue;
    if (found && found->digest != entry.digest)
      return fail(Kind::Untrusted, fmt::format("{}: index.json has two images called {}", reference_.path,
                                               printable(tag, 140)));
    found = entry;
  }
  return found;
}

Result<Descriptor> OciLayout::single() const {
  std::vector<Descriptor> images;
  std::vector<std::string> names;
  for (const auto& entry : index_.manifests) {
    if (is_attachment(entry)) continue;
    images.push_back(entry);
    names.push_back(ref_name(entry).empty() ? "@" + entry.digest.str() : printable(ref_name(entry), 140));
  }
  if (images.size() == 1) return images.front();
  if (images.empty()) return fail(Kind::NotFound, reference_.path + ": the layout holds no image");
  return fail(Kind::Usage, fmt::format("{}: the layout holds {} images", reference_.path, images.size()),
              "name one of them: " + join(names, ", "));
}

Result<Document> OciLayout::resolve() {
  if (reference_.digest) return manifest(*reference_.digest, nullptr);
  if (!reference_.tag) {
    const Descriptor descriptor = TRY(single());
    return manifest(descriptor.digest, &descriptor);
  }
  auto found = TRY(tagged(*reference_.tag));
  if (!found)
    return fail(Kind::NotFound,
                fmt::format("{}: no image called {} in index.json", reference_.path, *reference_.tag));
  return std::move(*found);
}

Result<Document> OciLayout::manifest(const Digest& digest, const Descriptor* descriptor) {
  const std::string what = fmt::format("{}: manifest {}", reference_.path, digest.str());
  auto bytes = TRY(read_whole(blob_path(digest), kMaxManifestBytes));
  if (!bytes) return fail(Kind::NotFound, what + " is missing");
  if (descriptor != nullptr && bytes->size() != descriptor->size)
    return fail(Kind::Untrusted, fmt::format("{} is not what the index names: {} bytes instead of {}", what,
                                             bytes->size(), descriptor->size));
  TRY(check_digest(*bytes, digest, what));
  std::string type = descriptor != nullptr ? descriptor->media_type : "";
  for (const auto& entry : index_.manifests)
    if (type.empty() && entry.digest == digest) type = entry.media_type;
  const std::string own = embedded_type(*bytes);
  if (!type.empty() && !own.empty() && own != type)
    return fail(Kind::Untrusted, fmt::format("{} calls itself {}, the index calls it {}", what,
                                             printable(own, 100), printable(type, 100)));
  return Document{std::move(*bytes), type.empty() ? own : type, digest};
}

Result<std::optional<Document>> OciLayout::tagged(const std::string& tag) {
  const auto found = TRY(find(tag));
  if (!found) return std::optional<Document>{};
  return std::optional(TRY(manifest(found->digest, &*found)));
}

Result<Reader> OciLayout::blob(const Descriptor& descriptor) {
  const std::string what = fmt::format("{}: blob {}", reference_.path, descriptor.digest.str());
  auto extent = TRY(files_(blob_path(descriptor.digest)));
  if (!extent) return fail(Kind::Offline, what + " is missing, though the manifest names it");
  if (extent->size != descriptor.size)
    return fail(Kind::Untrusted, fmt::format("{} is not what the manifest names: {} bytes instead of {}",
                                             what, extent->size, descriptor.size));
  return verified(read_extent(std::move(*extent), bytes_, *world_, what), descriptor, what);
}

Result<OciLayout> open_oci_directory(const World& world, const Reference& reference) {
  if (!exists(reference.path)) return fail(Kind::NotFound, reference.path + ": no such directory");
  Fd directory = TRY(open_directory(reference.path));
  const auto root = std::make_shared<Fd>(std::move(directory));
  return OciLayout::open(world, reference, [root, base = reference.path](const std::string& path) {
    return open_in(*root, base, path);
  });
}

}  // namespace rasupd
