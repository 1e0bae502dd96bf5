#pragma once
// Boot Loader Specification entries as values: read, parsed, resolved. Writes nothing. Errors: Boot.

#include <string>
#include <string_view>
#include <vector>

#include "bootloader/bootloader.hpp"

namespace rasupd::boot {

/// An entry of libostree's; the reason when it is not one (no or malformed `ostree=`, no version).
Result<Entry> parse_entry(std::string_view text, const std::string& file);

/// All of boot/loader/entries beneath `sysroot`. A missing directory is an empty menu.
Result<Menu> read_menu(const std::string& sysroot);

/// The deployment an entry leads to: ostree/deploy/STATEROOT/deploy/CHECKSUM.SERIAL. Error when a link of the
/// way or the directory is missing; the message names the entry.
Result<std::string> resolve(const std::string& sysroot, const Entry& entry);

/// An entry's `linux` or `initrd` as an absolute path. Entries may or may not carry the /boot prefix
/// (ostree's sysroot.bootprefix).
std::string boot_file(const std::string& sysroot, const std::string& path);

/// The arguments of an `options` line, split at white space outside double quotes.
std::vector<std::string> split_options(std::string_view options);

}  // namespace rasupd::boot
