#pragma once
// What names an ostree object: its id (SHA-256) and the attributes that go into it. The serialized header is
// the one libostree hashes and stores (ostree-core.c, "content stream"): a change here changes every id.

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fence/hash.hpp"

namespace rasupd {

struct ObjectId {
  std::array<unsigned char, 32> bytes{};
  std::string hex() const;
  /// nullopt unless 64 lower-case hex digits.
  static std::optional<ObjectId> of_hex(std::string_view hex);
  auto operator<=>(const ObjectId&) const = default;
};

struct Xattr {
  std::string name, value;
  auto operator<=>(const Xattr&) const = default;
};

/// Owner, mode with its S_IFMT bits, and extended attributes sorted by name, each name once.
struct Attributes {
  std::uint32_t uid = 0, gid = 0, mode = 0;
  std::vector<Xattr> xattrs;
  auto operator<=>(const Attributes&) const = default;
};

/// The bytes that stand before the content of a file object; of a symlink they are the whole object.
std::string object_header(const Attributes& attributes, std::string_view symlink_target);

/// The id of a file object while its content streams by.
class ObjectHash {
 public:
  ObjectHash(const Attributes& attributes, std::string_view symlink_target);
  void update(std::span<const std::byte> content) { hash_.update(content); }
  ObjectId finish();

 private:
  Sha256 hash_;
};

}  // namespace rasupd
