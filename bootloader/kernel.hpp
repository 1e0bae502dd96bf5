#pragma once
// Kernel and initramfs of a deployment, and their copies in boot/ostree. Errors: Boot, NoSpace, Failed.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace rasupd::boot {

struct KernelFiles {
  std::string version;            ///< the directory's name in usr/lib/modules
  std::string kernel, initramfs;  ///< absolute; initramfs is empty when there is none
};

/// The first usr/lib/modules/*/vmlinuz beneath `deployment` (absolute), as libostree picks it; nullopt when
/// none.
Result<std::optional<KernelFiles>> find_kernel_files(const std::string& deployment);

/// Where libostree looks for the copies: boot/ostree/STATEROOT-BOOTCSUM beneath `sysroot`, absolute.
std::string kernel_directory(const std::string& sysroot, const std::string& stateroot,
                             const std::string& boot_checksum);

/// Puts the copies in place before libostree switches: hard links where /boot is the same file system, else
/// copies that are synced, dropped from the page cache and compared. A copy that is already there and equal
/// stays; one that differs (a power cut, libostree never rewrites those) is replaced. A deployment without
/// kernel is left to libostree.
Result<void> install_kernel(const std::string& sysroot, const std::string& directory,
                            const std::string& stateroot, const std::string& boot_checksum);

/// Ends the name of a copy that is not finished; a power cut may leave one.
inline constexpr std::string_view kUnfinished = ".rasupd-new";

/// Makes `to` a copy of the regular file `from`: written beside it, synced, read back, renamed. Nothing when
/// it is equal already. The caller syncs the directory. A failure leaves `to` as it was and nothing beside
/// it.
Result<void> copy_file(const std::string& from, const std::string& to);

/// Are both regular files with the same bytes? Reads what is on the disk, not in the page cache, as far as
/// the kernel lets go of it.
Result<bool> same_content(const std::string& a, const std::string& b);

}  // namespace rasupd::boot
