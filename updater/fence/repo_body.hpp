#pragma once
// For the fence's own .cpp files: what a Repo holds.

#include "fence/gerror.hpp"
#include "fence/repo.hpp"

namespace rasupd {

struct Repo::Body {
  Object<OstreeRepo> repo;
  std::string path;
};

/// A handle of its own on the repository at `path`.
Result<Object<OstreeRepo>> open_repo_handle(const std::string& path);

}  // namespace rasupd
