#include "image/reference.hpp"

#include <fmt/format.h>

#include "base/image_name.hpp"
#include "base/text.hpp"

namespace rasupd {
namespace {

constexpr std::string_view kDocker = "docker://";
constexpr std::string_view kRegistry = "registry:";
constexpr std::string_view kOci = "oci:";
constexpr std::string_view kOciArchive = "oci-archive:";
constexpr std::string_view kForms =
    "write HOST[:PORT]/REPO[:TAG][@DIGEST], oci:PATH[:TAG] or oci-archive:PATH[:TAG]";
/// Words before ':' that name transports of podman and ostree which this program does not have.
constexpr std::string_view kForeign[] = {"containers-storage:",
                                         "docker-archive:",
                                         "docker-daemon:",
                                         "dir:",
                                         "ostree:",
                                         "docker:",
                                         "sif:",
                                         "tarball:"};

Result<Reference> parse_registry(std::string_view text) {
  ImageName name = TRY(ImageName::parse(text, Kind::Usage));
  Reference reference;
  reference.host = std::move(name.host);
  reference.repository = std::move(name.repository);
  reference.tag = std::move(name.tag);
  if (name.digest) reference.digest = TRY(Digest::parse(*name.digest, Kind::Usage));
  if (!reference.tag && !reference.digest) reference.tag = "latest";
  return reference;
}

/// A tag of a layout is an annotation; we take what is a registry's tag too, and the '+' of versions.
bool is_layout_tag(std::string_view tag) {
  std::string plain(tag);
  for (char& c : plain) c = c == '+' ? '_' : c;
  return is_tag(plain) && tag.front() != '+';
}

bool has_controls(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return true;
  }
  return !is_utf8(text);
}

Result<Reference> parse_layout(Transport transport, std::string_view text) {
  const std::string shown = printable(text, 200);
  Reference reference;
  reference.transport = transport;
  if (const auto at = text.rfind("@sha256:"); at != std::string_view::npos) {
    reference.digest = TRY(Digest::parse(text.substr(at + 1), Kind::Usage));
    text = text.substr(0, at);
  }
  const auto slash = text.rfind('/');
  const auto colon = text.rfind(':');
  if (colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash)) {
    const auto tag = text.substr(colon + 1);
    if (!is_layout_tag(tag)) {
      return fail(Kind::Usage, fmt::format("\"{}\": \"{}\" is not a tag", shown, printable(tag, 140)));
    }
    reference.tag = std::string(tag);
    text = text.substr(0, colon);
  }
  if (text.empty())
    return fail(Kind::Usage, fmt::format("\"{}\": the path is empty", shown), std::string(kForms));
  if (has_controls(text)) {
    return fail(Kind::Usage, fmt::format("\"{}\": control characters or broken UTF-8 in the path", shown));
  }
  reference.path = std::string(text);
  return reference;
}

/// registry:5000/os is a host and its port; registry:host/os is bootc's word for the transport.
bool is_port_of_registry(std::string_view rest) {
  const auto slash = rest.find('/');
  return slash != std::string_view::npos && slash > 0 &&
         rest.substr(0, slash).find_first_not_of("0123456789") == std::string_view::npos;
}

Result<Reference> unsupported(std::string_view text) {
  return fail(Kind::Usage, fmt::format("\"{}\": no such transport here", printable(text, 200)),
              std::string(kForms));
}

/// Takes `word` off the front of `text`.
bool eat(std::string_view* text, std::string_view word) {
  if (!text->starts_with(word)) return false;
  text->remove_prefix(word.size());
  return true;
}

/// Takes the signature scheme off an origin's reference and gives what Reference::parse() reads.
Result<std::string> without_scheme(std::string_view text) {
  if (eat(&text, "ostree-image-signed:") || eat(&text, "ostree-unverified-image:")) return std::string(text);
  if (eat(&text, "ostree-unverified-registry:")) return std::string(kDocker) + std::string(text);
  const bool image = text.starts_with("ostree-remote-image:");
  if (image || text.starts_with("ostree-remote-registry:")) {
    text.remove_prefix(text.find(':') + 1);
    const auto colon = text.find(':');
    if (colon == std::string_view::npos || colon == 0)
      return fail(Kind::Config, "the remote's name is missing");
    text.remove_prefix(colon + 1);
    return (image ? "" : std::string(kDocker)) + std::string(text);
  }
  return std::string(text);
}

}  // namespace

std::string_view transport_name(Transport transport) {
  switch (transport) {
    case Transport::registry:
      return "registry";
    case Transport::oci:
      return "oci";
    case Transport::oci_archive:
      return "oci-archive";
  }
  return "registry";
}

Result<Reference> Reference::parse(std::string_view text) {
  if (text.empty()) return fail(Kind::Usage, "the image reference is empty", std::string(kForms));
  std::string_view rest = text;
  if (eat(&rest, kDocker)) return parse_registry(rest);
  if (eat(&rest, kOciArchive)) return parse_layout(Transport::oci_archive, rest);
  if (eat(&rest, kOci)) return parse_layout(Transport::oci, rest);
  if (eat(&rest, kRegistry) && !is_port_of_registry(rest)) return parse_registry(rest);
  for (const auto word : kForeign) {
    if (text.starts_with(word) && !is_port_of_registry(text.substr(word.size()))) return unsupported(text);
  }
  if (text.find("://") != std::string_view::npos) return unsupported(text);
  return parse_registry(text);
}

Result<Reference> Reference::parse(std::string_view transport, std::string_view rest) {
  if (transport == "registry") return parse_registry(rest);
  if (transport == "oci") return parse_layout(Transport::oci, rest);
  if (transport == "oci-archive") return parse_layout(Transport::oci_archive, rest);
  return fail(Kind::Usage, fmt::format("no transport \"{}\"", printable(transport, 80)),
              "the transports are registry, oci and oci-archive");
}

Result<Reference> Reference::parse_origin(std::string_view text) {
  const auto as_config = [&](Error error) {
    error.kind = Kind::Config;
    return fail(std::move(error).within("container-image-reference"));
  };
  auto plain = without_scheme(text);
  if (!plain) return as_config(std::move(plain.error()));
  auto reference = parse(*plain);
  if (!reference) return as_config(std::move(reference.error()));
  return reference;
}

std::string Reference::name() const {
  if (transport == Transport::registry) return docker_name();
  return path + (tag ? ":" + *tag : "") + (digest ? "@" + digest->str() : "");
}

std::string Reference::docker_name() const {
  return host + "/" + repository + (tag ? ":" + *tag : "") + (digest ? "@" + digest->str() : "");
}

std::string Reference::str() const {
  if (transport != Transport::registry) return fmt::format("{}:{}", transport_name(transport), name());
  // A host that is spelled like a transport needs docker:// to be read back as a host.
  auto again = parse(name());
  return again && *again == *this ? name() : ref_key();
}

std::string Reference::ref_key() const {
  if (transport == Transport::registry) return std::string(kDocker) + name();
  return fmt::format("{}:{}", transport_name(transport), name());
}

std::string Reference::origin() const {
  return "ostree-image-signed:" + ref_key();
}

Reference Reference::with_digest(const Digest& d) const {
  Reference other = *this;
  other.tag.reset();
  other.digest = d;
  return other;
}

}  // namespace rasupd
