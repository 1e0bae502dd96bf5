#pragma once
// The directory an installation goes to: is it empty, and empty it. Stays on its file system.

#include <string>

#include "base/handle.hpp"
#include "base/result.hpp"

namespace rasupd {

/// True when there is nothing but lost+found, mount points with the directories on the way to them, and what an
/// interrupted installation left; or when only the last component is missing (it is made later). Error Usage when it is
/// no directory or its parent is missing.
Result<bool> root_is_empty(const std::string& root);

/// Holds `root` for one installation until the descriptor is closed. Error Busy when another holds it.
Result<Fd> claim_root(const std::string& root);

/// Removes everything beneath `root` but lost+found and mount points (those are emptied only of files that
/// lie on `root`'s own file system). Clears the immutable flag that ostree sets on deployments. Never follows
/// symlinks.
/// `keep`: one more name at the top that stays.
Result<void> empty_root(const std::string& root, const std::string& keep = {});
/// Removes what ostree keeps in ROOT/boot (loader*, ostree), which may be a file system of its own that
/// empty_root() leaves alone.
Result<void> clear_boot(const std::string& root);
/// Removes `name` beneath `root` with all it holds; missing is fine.
Result<void> remove_tree(const std::string& root, const std::string& name);

}  // namespace rasupd
