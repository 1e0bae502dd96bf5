#pragma once
// The EFI system partition as systemd-boot reads it: loader/entries/*.conf (Boot Loader Specification, "Type
// #1") and the kernels they name. VFAT: no links, no modes, names alike in upper and lower case. Errors:
// Boot, NoSpace. `esp` is the directory it is mounted at, absolute.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bootloader/bootloader.hpp"

namespace rasupd::boot::esp {

/// What systemd-boot sorts by first (251 and later; older ones take the file name, which says the same). The
/// digit puts ours before other systems', so that the default of the boot entries is the default here.
inline constexpr std::string_view kSortKey = "0-rasupd";

/// An entry of ours: a file ostree-NNNNNNNNNN[+LEFT[-DONE]].conf with `ostree=` among its options.
struct EspEntry {
  Entry entry;  ///< `file`, `title`, `kernel`, `initrd`, `options`, `ostree`, `deployment` (may be empty)
  std::uint64_t number = 0;      ///< of the file name; the highest boots
  std::optional<unsigned> left;  ///< starts that are left; nullopt without a counter
};

struct EspMenu {
  std::vector<EspEntry> ours;         ///< the highest number first
  std::vector<std::string> stronger;  ///< other systems' entries that systemd-boot puts before ours
  std::string others;                 ///< the text of all other *.conf: what it names is left alone
};

/// The entries. Half-written files are none. A missing directory is an empty menu.
Result<EspMenu> read_esp(const std::string& esp);

/// File name and content of an entry of ours with `number`, and the counter when `left` has one.
std::string file_name(std::uint64_t number, std::optional<unsigned> left);
std::string entry_text(const Entry& entry, std::uint64_t number);

/// Takes what `default` in loader/loader.conf says: empty when it lets `first` (an entry's file name) start,
/// else the reason why not.
Result<std::string> overriding_default(const std::string& esp, const std::string& first);

/// One file that an entry needs on the ESP.
struct Copy {
  std::string from, to;  ///< absolute
};
/// Kernel and initramfs of `entries`: from the deployment, else from /boot. Entries without a kernel have
/// none.
Result<std::vector<Copy>> copies(const std::string& sysroot, const std::string& esp,
                                 const std::vector<Entry>& entries);
/// Those of `all` that are missing on the ESP or differ.
Result<std::vector<Copy>> missing_copies(const std::vector<Copy>& all);

struct Space {
  std::uint64_t needed = 0, free = 0;  ///< bytes
};
/// What files of these sizes need on the ESP, entries included, and what is free there. Error Boot when it
/// cannot be asked.
Result<Space> space_for(const std::string& esp, const std::vector<std::uint64_t>& sizes);
/// Error NoSpace with both figures when they do not fit.
Result<void> check_space(const std::string& esp, const Space& space);

/// Removes what no entry names: directories ostree/STATEROOT-BOOTCSUM other than those of `keep` and of
/// today's entries, and what an interrupted run left. Kernels of other systems stay.
Result<void> remove_unused(const std::string& esp, const std::vector<Entry>& keep);

}  // namespace rasupd::boot::esp
