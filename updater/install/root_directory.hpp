#pragma once
// The directory an installation goes to: is it empty, and empty it. Stays on its file system.

#include <string>

#include "base/result.hpp"

namespace rasupd {

/// True when there is nothing but lost+found and mount points, or when only the last component is missing (it is made
/// later). Error Usage when it is no directory or its parent is missing.
Result<bool> root_is_empty(const std::string& root);

/// Removes everything beneath `root` but lost+found and mount points (those are emptied only of files that
/// lie on `root`'s own file system). Clears the immutable flag that ostree sets on deployments. Never follows
/// symlinks.
Result<void> empty_root(const std::string& root);

}  // namespace rasupd
