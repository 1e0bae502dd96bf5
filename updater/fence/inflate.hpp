#pragma once
// Decompressing readers. Each returns a Reader whose end means: the input ended exactly where the format says
// it may. Truncation, trailing bytes that are no further member or frame, and wrong checksums are Untrusted.
// gzip: any number of members, CRC-32 and length of each checked (RFC 1952). zstd: any number of frames and
// skippable frames (RFC 8878), as chunked layers end in skippable ones.

#include "base/stream.hpp"

namespace rasupd {

Reader inflate_gzip(Reader compressed);
Reader inflate_zstd(Reader compressed);

}  // namespace rasupd
