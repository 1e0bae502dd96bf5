#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "fence/inflate.hpp"

namespace rasupd {
namespace {

constexpr std::size_t kInput = 128 * 1024;
/// The decoder may hand back what sits in its 64-bit bit buffer; that may stem from the chunk before.
constexpr std::size_t kHeadroom = 8;

tl::unexpected<Error> damaged(std::string_view what) {
  return fail(Kind::Untrusted, "gzip data: " + std::string(what));
}

/// One gzip stream, member by member: header and trailer are read here, the deflate data by ISA-L.
class Gzip {
 public:
  explicit Gzip(Reader input) : input_(std::move(input)), buffer_(kHeadroom + kInput) {}

  Result<std::size_t> read(std::span<std::byte> out) {
    while (!out.empty()) {
      if (!in_member_ && !TRY(begin_member())) return std::size_t{0};
      const std::size_t n = TRY(decode(out));
      if (n != 0) return n;
    }
    return std::size_t{0};
  }

 private:
  Result<bool> refill() {
    at_ = end_ = kHeadroom;
    const std::size_t n = TRY(input_(std::span(buffer_).subspan(kHeadroom)));
    end_ += n;
    return n != 0;
  }
  Result<std::optional<unsigned>> next_byte() {
    if (at_ == end_ && !TRY(refill())) return std::optional<unsigned>{};
    return std::optional(std::to_integer<unsigned>(buffer_[at_++]));
  }
  Result<unsigned> byte() {
    const auto next = TRY(next_byte());
    if (!next) return damaged("truncated");
    return *next;
  }
  Result<std::uint32_t> le32() {
    std::uint32_t value = 0;
    for (int shift = 0; shift < 32; shift += 8) value |= TRY(byte()) << shift;
    return value;
  }
  Result<void> skip_text() {
    while (TRY(byte()) != 0) {
    }
    return {};
  }

  /// RFC 1952 section 2.3. False at the end of the input.
  Result<bool> begin_member() {
    const auto first = TRY(next_byte());
    if (!first) {
      if (members_ == 0) return damaged("empty");
      return false;
    }
    if (*first != 0x1F || TRY(byte()) != 0x8B) {
      return damaged(members_ == 0 ? "not a gzip stream" : "garbage after the last member");
    }
    if (TRY(byte()) != 8) return damaged("unknown compression method");
    const unsigned flags = TRY(byte());
    if (flags & 0xE0u) return damaged("reserved flags are set");
    for (int i = 0; i < 6; ++i) TRY(byte());  // time, extra flags, operating system
    if (flags & 4u) {
      unsigned length = TRY(byte());
      length |= TRY(byte()) << 8;
      while (length-- > 0) TRY(byte());
    }
    if (flags & 8u) TRY(skip_text());
    if (flags & 16u) TRY(skip_text());
    if (flags & 2u) {
      TRY(byte());
      TRY(byte());
    }
    isal_inflate_init(state_.get());
    crc_ = 0;
    length_ = 0;
    in_member_ = true;
    ++members_;
    return true;
  }

  Result<std::size_t> decode(std::span<std::byte> out) {
    if (!ended_ && at_ == end_ && state_->block_state != ISAL_BLOCK_FINISH) ended_ = !TRY(refill());
    auto* start = reinterpret_cast<std::uint8_t*>(out.data());
    const auto room = static_cast<std::uint32_t>(std::min<std::size_t>(out.size(), 1u << 30));
    state_->next_in = reinterpret_cast<std::uint8_t*>(buffer_.data() + at_);
    state_->avail_in = static_cast<std::uint32_t>(end_ - at_);
    state_->next_out = start;
    state_->avail_out = room;
    if (isal_inflate(state_.get()) != ISAL_DECOMP_OK) return damaged("invalid deflate data");
    at_ = end_ - state_->avail_in;
    const std::uint32_t made = room - state_->avail_out;
    crc_ = crc32_gzip_refl(crc_, start, made);
    length_ += made;
    if (state_->block_state == ISAL_BLOCK_FINISH) {
      TRY(end_member());
    } else if (made == 0 && ended_) {
      return damaged("truncated");
    }
    return std::size_t{made};
  }

  Result<void> end_member() {
    const int bits = state_->read_in_length;
    std::uint64_t unread = state_->read_in >> (bits % 8);
    const auto count = static_cast<std::size_t>(bits / 8);
    if (count > kHeadroom) return fail(Kind::Bug, "the inflate library kept more than its bit buffer");
    at_ -= count;
    for (std::size_t i = 0; i < count; ++i, unread >>= 8) buffer_[at_ + i] = std::byte(unread & 0xFFu);
    in_member_ = false;
    if (TRY(le32()) != crc_) return damaged("wrong checksum");
    if (TRY(le32()) != length_) return damaged("wrong length");
    return {};
  }

  Reader input_;
  std::vector<std::byte> buffer_;
  std::size_t at_ = kHeadroom, end_ = kHeadroom;
  std::unique_ptr<inflate_state> state_ = std::make_unique<inflate_state>();
  std::uint32_t crc_ = 0, length_ = 0;  // both modulo 2^32, as the format has them
  std::uint64_t members_ = 0;
  bool in_member_ = false, ended_ = false;
};

}  // namespace

Reader inflate_gzip(Reader compressed) {
  auto gzip = std::make_shared<Gzip>(std::move(compressed));
  return [gzip](std::span<std::byte> out) { return gzip->read(out); };
}

}  // namespace rasupd
