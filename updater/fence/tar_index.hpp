#pragma once
// Where the files of an uncompressed tar lie, so that they can be read in place.

#include <cstdint>
#include <map>
#include <string>

#include "base/result.hpp"

namespace rasupd {

struct TarExtent {
  std::uint64_t offset = 0, size = 0;
};

/// Name (without leading "./") → extent, of regular files only. `fd` is read from its beginning; its offset
/// is moved. Errors: Untrusted: not a tar, damaged, sparse, a name twice; compressed archives say so.
Result<std::map<std::string, TarExtent>> index_tar(int fd, const std::string& path);

}  // namespace rasupd
