#pragma once
// GRUB 2 without blscfg (Debian 12 and 13 have none): a static boot/grub/grub.cfg that is written once, a menu
// beside the entries in boot/loader.N/grub.cfg, so that libostree's swap of the `loader` link turns both at once,
// and the counter in boot/grub/grubenv, which GRUB itself rewrites (GRUB manual, "The GRUB environment block": exactly
// 1024 bytes, in place, never by rename). GRUB reads ext4 without replaying its journal.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bootloader/bootloader.hpp"

namespace rasupd::boot::grub {

/// Bytes of an environment block.
inline constexpr std::size_t kEnvironmentBytes = 1024;

/// Writes boot/grub/grub.cfg and, when it is missing, boot/grub/grubenv beneath `sysroot`. `separate_boot`: /boot is
/// a file system of its own, so GRUB's paths have no /boot prefix. Idempotent; durable.
Result<void> write_static_files(const std::string& sysroot, bool separate_boot);
/// True when boot/grub/grub.cfg is rasupd's.
Result<bool> is_installed(const std::string& sysroot);

/// The static configuration (for tests and write_static_files()).
std::string static_config(bool separate_boot);
/// The menu of `entries`; `trial`: the id of the first one's deployment when it boots on trial, else empty.
std::string menu_text(const std::vector<Entry>& entries, const std::string& trial);
/// The id of the trial a menu names; empty when none.
std::string trial_of_menu(std::string_view menu);

/// An environment block of exactly kEnvironmentBytes with the counter, or without.
std::string environment_text(const std::optional<Trial>& trial);
/// What a block says. Error Boot when it is no environment block or half a counter.
Result<std::optional<Trial>> parse_environment(std::string_view block);

}  // namespace rasupd::boot::grub
