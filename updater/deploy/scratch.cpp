#include "deploy/scratch.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/files.hpp"

namespace rasupd {

Result<Scratch> Scratch::make(const std::string& sysroot) {
  std::string path = path_join(sysroot, "ostree/repo/tmp/rasupd-XXXXXX");
  if (!::mkdtemp(path.data())) return fail_errno(errno, "creating " + path);
  return Scratch(std::move(path));
}

Scratch::~Scratch() {
  std::error_code ignored;  // what stays expires
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace rasupd
