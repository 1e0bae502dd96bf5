#pragma once
// Digest: the name of content (OCI image-spec, descriptor.md "Digests"). Only sha256 is accepted: it is what
// signatures bind, and a second algorithm would be a second chance for a lie.

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace rasupd {

class Digest {
 public:
  Digest() = default;
  /// "sha256:" and 64 lower-case hex digits; anything else is an error of `kind`.
  static Result<Digest> parse(std::string_view text, Kind kind = Kind::Untrusted);
  /// From 64 lower-case hex digits that our own hash produced.
  static Digest of_hex(std::string hex);

  const std::string& hex() const { return hex_; }
  std::string str() const { return "sha256:" + hex_; }
  bool empty() const { return hex_.empty(); }
  auto operator<=>(const Digest&) const = default;

 private:
  std::string hex_;
};

}  // namespace rasupd
