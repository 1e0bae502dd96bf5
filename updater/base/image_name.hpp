#pragma once
// The grammar of image names in a registry (distribution-spec "Pulling manifests"; hosts as containers/image
// reads them): one reading for what a person types, what a policy file says and what a signature claims.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace rasupd {

/// "sha256:" and 64 lower-case hex digits.
bool is_sha256_digest(std::string_view text);
/// [A-Za-z0-9_][A-Za-z0-9._-]{0,127}
bool is_tag(std::string_view text);
/// Labels of letters, digits and inner '-', joined by '.', or [IPv6]; then perhaps :port.
bool is_host(std::string_view text);
/// Slash-separated components of [a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*.
bool is_repository(std::string_view text);

struct ImageName {
  std::string host;        ///< never empty; Docker Hub is always docker.io
  std::string repository;  ///< Docker Hub's one-word names with their library/
  std::optional<std::string> tag;
  std::optional<std::string> digest;

  /// HOST[:PORT]/REPO[:TAG][@DIGEST], fully qualified: the host has a '.' or ':' or is localhost. A tag is
  /// never invented. Errors: `kind`, saying what is wrong with which part.
  static Result<ImageName> parse(std::string_view text, Kind kind);

  std::string name() const { return host + "/" + repository; }
  std::string str() const;
  bool operator==(const ImageName&) const = default;
};

}  // namespace rasupd
