#include <cstring>

#include "base/text.hpp"
#include "fence/object.hpp"

namespace rasupd {
namespace {

void put_be32(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>((value >> shift) & 0xFFu);
}

/// GVariant's container framing: offsets are as wide as the finished container needs.
std::size_t offset_width(std::size_t body, std::size_t offsets) {
  for (const std::size_t width : {1u, 2u, 4u}) {
    if (body + width * offsets < (std::size_t{1} << (8 * width))) return width;
  }
  return 8;
}

void put_offset(std::string& out, std::size_t value, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) out += static_cast<char>((value >> (8 * i)) & 0xFFu);
}

/// "a(ayay)": pairs of name (with its NUL) and value.
std::string serialize_xattrs(const std::vector<Xattr>& xattrs) {
  std::string body;
  std::vector<std::size_t> ends;
  for (const Xattr& xattr : xattrs) {
    const std::size_t name_end = xattr.name.size() + 1;
    body += xattr.name;
    body += '\0';
    body += xattr.value;
    put_offset(body, name_end, offset_width(name_end + xattr.value.size(), 1));
    ends.push_back(body.size());
  }
  const std::size_t width = offset_width(body.size(), ends.size());
  for (const std::size_t end : ends) put_offset(body, end, width);
  return body;
}

}  // namespace

std::string ObjectId::hex() const {
  return to_hex(std::as_bytes(std::span(bytes)));
}

std::optional<ObjectId> ObjectId::of_hex(std::string_view hex) {
  const auto raw = from_hex(hex);
  if (!raw || raw->size() != 32) return std::nullopt;
  ObjectId id;
  std::memcpy(id.bytes.data(), raw->data(), 32);
  return id;
}

std::string object_header(const Attributes& attributes, std::string_view symlink_target) {
  std::string variant;
  put_be32(variant, attributes.uid);
  put_be32(variant, attributes.gid);
  put_be32(variant, attributes.mode);
  put_be32(variant, 0);  // device numbers: objects are never devices
  variant += symlink_target;
  variant += '\0';
  const std::size_t target_end = variant.size();
  variant += serialize_xattrs(attributes.xattrs);
  put_offset(variant, target_end, offset_width(variant.size(), 1));
  std::string header;
  put_be32(header, static_cast<std::uint32_t>(variant.size()));
  header.append(4, '\0');  // the variant starts at a multiple of 8
  return header + variant;
}

ObjectHash::ObjectHash(const Attributes& attributes, std::string_view symlink_target) {
  hash_.update(as_bytes(object_header(attributes, symlink_target)));
}

ObjectId ObjectHash::finish() {
  return *ObjectId::of_hex(hash_.finish_hex());
}

}  // namespace rasupd
