#include "image/digest.hpp"

#include <fmt/format.h>

#include "base/image_name.hpp"
#include "base/text.hpp"

namespace rasupd {

Result<Digest> Digest::parse(std::string_view text, Kind kind) {
  if (!is_sha256_digest(text)) {
    return fail(kind, fmt::format("\"{}\" is not a digest: sha256: and 64 lower-case hex digits",
                                  printable(text, 150)));
  }
  return of_hex(std::string(text.substr(text.find(':') + 1)));
}

Digest Digest::of_hex(std::string hex) {
  Digest digest;
  digest.hex_ = std::move(hex);
  return digest;
}

}  // namespace rasupd
