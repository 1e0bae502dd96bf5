#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/files.hpp"
#include "fence/tar_index.hpp"
#include "source/oci_layout.hpp"

namespace rasupd {

Result<OciLayout> open_oci_archive(const World& world, const Reference& reference) {
  const std::string& path = reference.path;
  auto file = std::make_shared<Fd>(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!*file && (errno == ENOENT || errno == ENOTDIR)) return fail(Kind::NotFound, path + ": no such file");
  if (!*file) return fail_errno(errno, "opening " + path);
  struct stat info {};
  if (::fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode))
    return fail(Kind::NotFound, path + ": not a file; a layout in a directory is written oci:" + path);
  auto index = TRY(index_tar(file->get(), path));
  const auto size = static_cast<std::uint64_t>(info.st_size);
  for (const auto& [name, extent] : index)
    if (extent.size > size || extent.offset > size - extent.size)
      return fail(Kind::Untrusted, fmt::format("{}: the archive is cut off", path));
  const auto find = [file,
                     index = std::move(index)](const std::string& name) -> Result<std::optional<Extent>> {
    const auto found = index.find(name);
    if (found == index.end()) return std::optional<Extent>{};
    return std::optional(Extent{file, found->second.offset, found->second.size});
  };
  return OciLayout::open(world, reference, find);
}

}  // namespace rasupd
