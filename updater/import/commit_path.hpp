#pragma once
// Files of a commit by their path, without a checkout. Errors: Failed, Unsuitable.

#include <optional>
#include <string>
#include <vector>

#include "fence/repo.hpp"

namespace rasupd {

/// The listing of the directory at `path` (its components); nullopt when there is none.
Result<std::optional<DirectoryListing>> list_at(const Repo& repo, const std::string& commit,
                                                const std::vector<std::string>& path);

/// The regular file `name` in `directory`; nullopt when it is missing. A symlink, or more than `max_bytes`, is
/// Unsuitable.
Result<std::optional<std::string>> read_at(const Repo& repo, const std::string& commit,
                                           const std::vector<std::string>& directory, const std::string& name,
                                           std::size_t max_bytes);

}  // namespace rasupd
