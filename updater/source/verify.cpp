#include "source/verify.hpp"

#include <fmt/format.h>

#include <memory>

#include "base/text.hpp"
#include "fence/hash.hpp"

namespace rasupd {
namespace {

constexpr std::string_view kHint =
    "the registry or something on the way to it changed the image; nothing of it was used";

tl::unexpected<Error> wrong_digest(std::string_view what, const std::string& hex, const Digest& wanted) {
  return fail(Kind::Untrusted,
              fmt::format("{} is not what the manifest names: digest sha256:{} instead of {}", what, hex,
                          wanted.str()),
              std::string(kHint));
}

struct Check {
  Reader raw;
  Descriptor descriptor;
  std::string what;
  Sha256 hash{};
  std::uint64_t position = 0;
  bool over = false;

  Result<std::size_t> read(std::span<std::byte> into) {
    if (over) return fail(Kind::Bug, what + ": read after its end");
    auto n = raw(into);
    if (!n) {
      over = true;
      return n;
    }
    if (*n == 0) return end();
    if (*n > descriptor.size - position) {
      over = true;
      return fail(Kind::Untrusted,
                  fmt::format("{} is not what the manifest names: more than {} bytes", what, descriptor.size),
                  std::string(kHint));
    }
    position += *n;
    hash.update(into.first(*n));
    return n;
  }

  Result<std::size_t> end() {
    over = true;
    if (position != descriptor.size)
      return fail(Kind::Untrusted,
                  fmt::format("{} is not what the manifest names: {} bytes instead of {}", what, position,
                              descriptor.size),
                  std::string(kHint));
    const std::string hex = hash.finish_hex();
    if (hex != descriptor.digest.hex()) return wrong_digest(what, hex, descriptor.digest);
    return 0;
  }
};

}  // namespace

Reader verified(Reader raw, const Descriptor& descriptor, std::string what) {
  auto check = std::make_shared<Check>(Check{std::move(raw), descriptor, std::move(what)});
  return [check](std::span<std::byte> into) { return check->read(into); };
}

Result<void> check_digest(std::string_view bytes, const Digest& digest, std::string_view what) {
  const std::string hex = sha256_hex(as_bytes(bytes));
  if (hex != digest.hex()) return wrong_digest(what, hex, digest);
  return {};
}

}  // namespace rasupd
