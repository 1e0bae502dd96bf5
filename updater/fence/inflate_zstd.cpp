#include <zstd.h>

#include <memory>
#include <string>
#include <vector>

#include "base/handle.hpp"
#include "fence/inflate.hpp"

namespace rasupd {
namespace {

/// 8 MiB is what RFC 8878 section 3.1.1.1.2 asks decoders to support; `zstd --long` and level 22 write up
/// to 128 MiB, which would not fit an updater's memory.
constexpr int kWindowLog = 25;

class Zstd {
 public:
  explicit Zstd(Reader input) : input_(std::move(input)), buffer_(ZSTD_DStreamInSize()) {
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kWindowLog);
  }

  Result<std::size_t> read(std::span<std::byte> out) {
    ZSTD_outBuffer made{out.data(), out.size(), 0};
    while (made.pos == 0 && made.size != 0) {
      // A full output buffer may have left bytes inside the decoder: ask it before asking for more input.
      if (in_.pos == in_.size && !flush_) {
        const std::size_t n = TRY(input_(buffer_));
        if (n == 0) return at_end();
        in_ = {buffer_.data(), n, 0};
      }
      const std::size_t rest = ZSTD_decompressStream(context_.get(), &made, &in_);
      if (ZSTD_isError(rest)) {
        return fail(Kind::Untrusted, std::string("zstd data: ") + ZSTD_getErrorName(rest));
      }
      started_ = true;
      inside_ = rest != 0;
      flush_ = made.pos == made.size && inside_;
    }
    return made.pos;
  }

 private:
  Result<std::size_t> at_end() const {
    if (!started_) return fail(Kind::Untrusted, "zstd data: empty");
    if (inside_) return fail(Kind::Untrusted, "zstd data: truncated");
    return std::size_t{0};
  }

  Reader input_;
  std::vector<std::byte> buffer_;
  std::unique_ptr<ZSTD_DCtx, Deleter<ZSTD_freeDCtx>> context_{ZSTD_createDCtx()};
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool started_ = false, inside_ = false, flush_ = false;
};

}  // namespace

Reader inflate_zstd(Reader compressed) {
  auto zstd = std::make_shared<Zstd>(std::move(compressed));
  return [zstd](std::span<std::byte> out) { return zstd->read(out); };
}

}  // namespace rasupd
