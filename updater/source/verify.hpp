#pragma once
// Bytes against the descriptor that names them.

#include <string>
#include <string_view>

#include "base/stream.hpp"
#include "image/manifest.hpp"

namespace rasupd {

/// Reads from `raw` and checks size and digest: the end (0) is only ever reported after verified bytes. A lie
/// is Untrusted, at the first byte too many; `what` names the blob in messages. `raw` ending early is
/// Untrusted too: a reader that can be cut off says so itself.
Reader verified(Reader raw, const Descriptor& descriptor, std::string what);

/// Error Untrusted when `bytes` are not `digest`.
Result<void> check_digest(std::string_view bytes, const Digest& digest, std::string_view what);

}  // namespace rasupd
