#include "fence/tar.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "base/handle.hpp"
#include "base/text.hpp"

namespace rasupd {
namespace {

constexpr std::size_t kBlock = 128 * 1024;

/// libarchive converts pax names to the locale of the calling thread and warns where that fails; with a UTF-8
/// locale the conversion is the identity. C.UTF-8 is part of glibc (and Debian's libc-bin before that).
class Utf8Locale {
 public:
  Utf8Locale() : saved_(wanted() ? uselocale(wanted()) : nullptr) {}
  ~Utf8Locale() {
    if (saved_) uselocale(saved_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  static locale_t wanted() {
    static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return locale;
  }
  locale_t saved_;
};

std::optional<TarEntry::Type> type_of(unsigned kind) {
  switch (kind) {
    case AE_IFREG:
      return TarEntry::Type::file;
    case AE_IFDIR:
      return TarEntry::Type::directory;
    case AE_IFLNK:
      return TarEntry::Type::symlink;
    case AE_IFCHR:
      return TarEntry::Type::character;
    case AE_IFBLK:
      return TarEntry::Type::block;
    case AE_IFIFO:
      return TarEntry::Type::fifo;
    case AE_IFSOCK:
      return TarEntry::Type::socket;
    default:
      return std::nullopt;
  }
}

std::string text_of(const char* text) {
  return text ? text : "";
}

}  // namespace

struct TarReader::State {
  Reader input;
  std::vector<std::byte> block = std::vector<std::byte>(kBlock);
  std::optional<Error> input_error;
  std::unique_ptr<archive, Deleter<archive_read_free>> handle{archive_read_new()};
  bool opened = false;

  static la_ssize_t pull(archive* handle, void* data, const void** block) noexcept {
    auto& self = *static_cast<State*>(data);
    *block = self.block.data();
    auto n = self.input(self.block);
    if (n) return static_cast<la_ssize_t>(*n);
    self.input_error = std::move(n.error());
    archive_set_error(handle, EIO, "reading the layer");
    return -1;
  }
  /// The input's own error goes first: libarchive only saw that reading failed.
  tl::unexpected<Error> failure() {
    if (input_error) return fail(std::move(*input_error));
    const char* text = archive_error_string(handle.get());
    return fail(Kind::Untrusted, "tar: " + printable(text ? text : "malformed archive"));
  }
  Result<void> open() {
    archive_read_support_format_tar(handle.get());
    // An empty layer is an empty tar to every other reader: two zero blocks may be missing.
    archive_read_support_format_empty(handle.get());
    if (archive_read_open(handle.get(), this, nullptr, pull, nullptr) != ARCHIVE_OK) return failure();
    opened = true;
    return {};
  }
};

TarReader::TarReader(Reader input) : state_(std::make_unique<State>()) {
  state_->input = std::move(input);
}
TarReader::~TarReader() = default;
TarReader::TarReader(TarReader&&) noexcept = default;
TarReader& TarReader::operator=(TarReader&&) noexcept = default;

namespace {

Result<void> fill(archive_entry* from, TarEntry& entry) {
  const char* path = archive_entry_pathname(from);
  if (!path) return fail(Kind::Untrusted, "tar: an entry without a name");
  entry.path = path;
  if (const char* target = archive_entry_hardlink(from)) {
    entry.type = TarEntry::Type::hardlink;
    entry.link = target;
  } else {
    const auto type = type_of(archive_entry_filetype(from));
    if (!type) return fail(Kind::Untrusted, "tar: unknown kind of entry: " + printable(entry.path));
    entry.type = *type;
    entry.link = text_of(archive_entry_symlink(from));
  }
  const auto uid = archive_entry_uid(from), gid = archive_entry_gid(from);
  if (uid < 0 || gid < 0 || uid > 0xFFFFFFFE || gid > 0xFFFFFFFE) {  // -1 is "no change" to chown(2)
    return fail(Kind::Untrusted, "tar: owner out of range: " + printable(entry.path));
  }
  entry.uid = static_cast<std::uint32_t>(uid);
  entry.gid = static_cast<std::uint32_t>(gid);
  entry.permissions = archive_entry_perm(from) & 07777u;
  const auto size = archive_entry_size(from);
  if (size < 0) return fail(Kind::Untrusted, "tar: negative size: " + printable(entry.path));
  entry.size = static_cast<std::uint64_t>(size);
  entry.device = archive_entry_rdev(from);
  entry.xattrs.clear();
  archive_entry_xattr_reset(from);
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t length = 0;
  while (archive_entry_xattr_next(from, &name, &value, &length) == ARCHIVE_OK) {
    entry.xattrs.push_back({text_of(name), std::string(static_cast<const char*>(value), length)});
  }
  return {};
}

}  // namespace

Result<bool> TarReader::next(TarEntry& entry) {
  const Utf8Locale locale;
  if (!state_->opened) TRY(state_->open());
  archive_entry* from = nullptr;
  const int status = archive_read_next_header(state_->handle.get(), &from);
  if (status == ARCHIVE_EOF) return false;
  if (status != ARCHIVE_OK) return state_->failure();
  TRY(fill(from, entry));
  return true;
}

Result<std::size_t> TarReader::read(std::span<std::byte> out) {
  const la_ssize_t n = archive_read_data(state_->handle.get(), out.data(), out.size());
  if (n < 0) return state_->failure();
  return static_cast<std::size_t>(n);
}

}  // namespace rasupd
