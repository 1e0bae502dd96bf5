#pragma once
// Reference: what a person or a file calls an image. Short names are refused (contract, section 1).

#include <optional>
#include <string>
#include <string_view>

#include "image/digest.hpp"

namespace rasupd {

enum class Transport { registry, oci, oci_archive };

std::string_view transport_name(Transport transport);  ///< "registry", "oci", "oci-archive"

struct Reference {
  Transport transport = Transport::registry;
  std::string host;        ///< registry: host[:port] as written
  std::string repository;  ///< registry: a/b/c
  std::string path;        ///< oci, oci-archive: as written; absolute once resolved by absolute()
  std::optional<std::string> tag;
  std::optional<Digest> digest;

  /// HOST[:PORT]/REPO[:TAG][@DIGEST], docker://…, registry:…, oci:PATH[:TAG], oci-archive:PATH[:TAG].
  /// Without tag and digest a registry reference gets the tag "latest". Errors: Usage, with the reason.
  static Result<Reference> parse(std::string_view text);
  /// bootc's two-part form: transport word ("registry", "oci", "oci-archive") and the rest.
  static Result<Reference> parse(std::string_view transport, std::string_view rest);
  /// The origin's `container-image-reference`: an optional signature scheme ("ostree-image-signed:",
  /// "ostree-unverified-image:", "ostree-unverified-registry:", "ostree-remote-image:NAME:") before
  /// transport and name, as ostree-ext writes it. Errors: Config.
  static Result<Reference> parse_origin(std::string_view text);

  std::string str() const;      ///< with transport where it is not registry; parse(str()) gives it back
  std::string name() const;     ///< without transport: bootc's spec.image.image
  std::string origin() const;   ///< what is written to the origin file: ostree-image-signed:docker://… or …:oci:…
  std::string docker_name() const;  ///< registry: host/repo[:tag][@digest], the "image identity" of containers-policy.json(5)
  std::string ref_key() const;  ///< ostree-ext's "transport:name" before escaping (docker://… for registry)
  Reference with_digest(const Digest& d) const;
  bool operator==(const Reference&) const = default;
};

}  // namespace rasupd
