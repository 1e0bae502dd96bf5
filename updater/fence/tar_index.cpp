#include "fence/tar_index.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string_view>

#include "base/handle.hpp"
#include "base/text.hpp"

namespace rasupd {
namespace {

using ArchiveHandle = std::unique_ptr<archive, Deleter<archive_read_free>>;

/// An image has some hundred blobs; this bounds an archive of empty files.
constexpr std::size_t kMaxEntries = 100'000;
constexpr std::size_t kBlock = 64 << 10;

Result<void> refuse_compressed(int fd, const std::string& path) {
  struct Magic {
    std::string_view bytes, name;
  };
  constexpr Magic kMagics[] = {
      {"\x1f\x8b", "gzip"}, {"\x28\xb5\x2f\xfd", "zstd"}, {"\xfd\x37zXZ", "xz"}, {"BZh", "bzip2"}};
  char head[8] = {};
  const ssize_t n = ::pread(fd, head, sizeof head, 0);
  if (n < 0) return fail_errno(errno, "reading " + path);
  const std::string_view start(head, static_cast<std::size_t>(n));
  for (const auto& magic : kMagics)
    if (start.starts_with(magic.bytes))
      return fail(Kind::Untrusted,
                  path + ": a compressed archive (" + std::string(magic.name) + "); it must be a plain tar",
                  "unpack it once, e.g. with zcat or zstdcat, and name the result");
  return {};
}

tl::unexpected<Error> damaged(archive* reader, const std::string& path) {
  const char* why = archive_error_string(reader);
  return fail(Kind::Untrusted,
              path + ": not a readable tar: " + printable(why != nullptr ? why : "unknown", 200));
}

Result<void> add_entry(std::map<std::string, TarExtent>& index, archive* reader, archive_entry* entry,
                       const std::string& path) {
  if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) return {};
  const char* raw = archive_entry_pathname(entry);
  if (raw == nullptr) return fail(Kind::Untrusted, path + ": an entry without a readable name");
  std::string_view name = raw;
  while (name.starts_with("./")) name.remove_prefix(2);
  if (archive_entry_sparse_count(entry) > 0 || archive_entry_size(entry) < 0)
    return fail(Kind::Untrusted, path + ": " + printable(name, 200) + ": sparse entries are not supported");
  TarExtent extent;
  extent.offset = static_cast<std::uint64_t>(archive_filter_bytes(reader, 0));
  extent.size = static_cast<std::uint64_t>(archive_entry_size(entry));
  if (!index.emplace(name, extent).second)
    return fail(Kind::Untrusted, path + ": " + printable(name, 200) + " is in it twice");
  if (index.size() > kMaxEntries) return fail(Kind::Untrusted, path + ": too many entries");
  return {};
}

}  // namespace

Result<std::map<std::string, TarExtent>> index_tar(int fd, const std::string& path) {
  TRY(refuse_compressed(fd, path));
  if (::lseek(fd, 0, SEEK_SET) != 0) return fail_errno(errno, path);
  const ArchiveHandle reader(archive_read_new());
  archive_read_support_format_tar(reader.get());
  if (archive_read_open_fd(reader.get(), fd, kBlock) != ARCHIVE_OK) return damaged(reader.get(), path);
  std::map<std::string, TarExtent> index;
  for (;;) {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(reader.get(), &entry);
    if (status == ARCHIVE_EOF) return index;
    if (status != ARCHIVE_OK) return damaged(reader.get(), path);
    TRY(add_entry(index, reader.get(), entry, path));
  }
}

}  // namespace rasupd
