#pragma once
// The EFI system partition's content. It is gathered in a directory and copied by mtools, because the host
// that installs may have no VFAT. Errors: Failed, NoSpace, Unsuitable.

#include <string>
#include <string_view>

#include "base/world.hpp"
#include "fence/repo.hpp"

namespace rasupd {

/// Puts systemd-boot into `tree`: from the image's usr/lib/systemd/boot/efi, else this host's, with a
/// loader.conf that shows no menu and no editor; a loader.conf and an EFI/BOOT/BOOT….EFI that are there stay. Error Unsuitable naming the package when neither has it.
Result<void> put_systemd_boot(const Repo& repo, const std::string& commit, std::string_view architecture,
                              const std::string& tree);

/// Copies everything in `tree` to the FAT file system on the block device `device`. Error NoSpace when it
/// does not fit.
Result<void> fill_esp(Runner& runner, const std::string& device, const std::string& tree);

}  // namespace rasupd
