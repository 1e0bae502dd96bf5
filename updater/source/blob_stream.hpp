#pragma once
// BlobStream: a blob from a registry as one uninterrupted stream. A cut or stalled transfer goes on by Range
// where it stopped; a server without Range sends it again and what was already handed out is passed over.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "fence/http.hpp"
#include "image/manifest.hpp"
#include "source/login.hpp"

namespace rasupd {

class Registry;

class BlobStream {
 public:
  BlobStream(std::shared_ptr<Registry> registry, Descriptor descriptor);

  /// Up to the descriptor's size, then 0. Errors: Offline (missing, or cut off for good), Untrusted (longer
  /// than the descriptor says), Denied, Cancelled. Not for two threads at once.
  Result<std::size_t> read(std::span<std::byte> into);

 private:
  std::optional<Failure> open();
  std::optional<Failure> accept_partial(const HttpResponse& response);
  Result<void> again(Failure failure);
  Result<std::size_t> at_end();
  Failure passing(std::string why) const;

  std::shared_ptr<Registry> registry_;
  Descriptor descriptor_;
  std::string what_;
  std::optional<HttpTransfer> transfer_;
  std::uint64_t position_ = 0;  ///< bytes handed out
  std::uint64_t skip_ = 0;      ///< bytes of this transfer that were handed out before
  bool ranges_ = true;          ///< false once the server gave a wrong answer to a Range
  unsigned attempt_ = 0;
  std::uint64_t mark_ = 0;  ///< where attempt_ was last set to zero
};

/// RFC 9110 section 14.4: "bytes FIRST-LAST/TOTAL". nullopt for anything else, an unknown total too.
struct ContentRange {
  std::uint64_t first = 0, last = 0, total = 0;
};
std::optional<ContentRange> parse_content_range(std::string_view text);

}  // namespace rasupd
