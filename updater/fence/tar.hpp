#pragma once
// TarReader: the entries of a tar stream as plain values. libarchive decodes the headers (ustar, pax, GNU);
// nothing is extracted, no path is judged. Anything libarchive only warns about is an error: a warning means
// that two readers may see two different archives. Names arrive as the bytes of the archive whatever the
// process locale is. Errors: Untrusted (malformed), or what the input reader returned.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/stream.hpp"
#include "fence/object.hpp"

namespace rasupd {

struct TarEntry {
  enum class Type { file, directory, symlink, hardlink, character, block, fifo, socket };
  Type type = Type::file;
  std::string path;  ///< as written
  std::string link;  ///< target of a symlink or hardlink, as written
  std::uint32_t uid = 0, gid = 0;
  std::uint32_t permissions = 0;  ///< the low 12 bits of the mode
  std::uint64_t size = 0;
  std::uint64_t device = 0;   ///< of a character or block device
  std::vector<Xattr> xattrs;  ///< in archive order
};

class TarReader {
 public:
  explicit TarReader(Reader input);
  ~TarReader();
  TarReader(TarReader&&) noexcept;
  TarReader& operator=(TarReader&&) noexcept;

  /// Moves to the next entry; false at the end of the archive. The input may go on after it: drain it.
  Result<bool> next(TarEntry& entry);
  /// Content of the current entry, holes as zeros; 0 is its end.
  Result<std::size_t> read(std::span<std::byte> out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rasupd
