#include "state/state_dir.hpp"

#include "base/files.hpp"

namespace rasupd {

std::string state_directory(const std::string& sysroot, bool running, const std::string& stateroot) {
  if (running) return "/var/lib/rasupd";
  return path_join(sysroot, "ostree/deploy/" + stateroot + "/var/lib/rasupd");
}

Result<std::optional<std::string>> read_role(const std::string& directory) {
  constexpr std::string_view prefix = "role.";
  for (const std::string& name : TRY(list_directory(directory))) {
    if (name.starts_with(prefix) && name != "role.env") return std::optional(name.substr(prefix.size()));
  }
  return std::optional<std::string>{};
}

}  // namespace rasupd
