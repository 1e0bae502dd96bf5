// The texts GRUB reads: the static configuration and the menu.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "bootloader/entries.hpp"
#include "bootloader/entry_files.hpp"
#include "bootloader/grub.hpp"

namespace rasupd::boot::grub {
namespace {

/// A word that GRUB's shell takes as it is (GRUB manual, "Shell-like scripting": nothing is special between single
/// quotes but the single quote).
std::string in_quotes(std::string_view word) {
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out + "'";
}

/// GRUB puts an argument with blanks into double quotes when it hands it to the kernel and escapes those that are
/// there, so ours are taken off.
std::string argument(std::string word) {
  std::erase(word, '"');
  return in_quotes(word);
}

/// Below the file system of /boot.
std::string grub_path(const std::string& path) {
  return "\"$rasupd_boot\"" + in_quotes(below_boot(path));
}

constexpr std::string_view kTrialPrefix = "set rasupd_trial=";

/// Counting down in a language without arithmetic; settings allow up to nine starts.
std::string count_down() {
  std::string out;
  for (int left = 9; left >= 1; --left) {
    out += fmt::format("  {} [ \"$rasupd_left\" = \"{}\" ]; then set rasupd_left=\"{}\"\n", left == 9 ? "if" : "elif",
                       left, left - 1);
  }
  return out;
}

}  // namespace

std::string static_config(bool separate_boot) {
  return fmt::format(
      R"(# rasupd-grub 1
# Written by `rasupd install`. The menu lies beside the boot entries and turns with them; put what you want to add
# (a serial console, a timeout) into custom.cfg in this directory.
set rasupd_boot="{}"
set timeout_style=hidden
set timeout=1
set default=0
set fallback=1
set rasupd_trial=""
if [ -f $prefix/custom.cfg ]; then source $prefix/custom.cfg; fi
if [ -f $rasupd_boot/loader/grub.cfg ]; then source $rasupd_boot/loader/grub.cfg
elif [ -f $rasupd_boot/loader.0/grub.cfg ]; then source $rasupd_boot/loader.0/grub.cfg
elif [ -f $rasupd_boot/loader.1/grub.cfg ]; then source $rasupd_boot/loader.1/grub.cfg
fi
# A deployment on trial starts only while the counter in grubenv is its own, above nothing, and can be saved.
if [ -n "$rasupd_trial" ]; then
  set rasupd_id=""
  set rasupd_left=""
  load_env -f $prefix/grubenv rasupd_id rasupd_left
  if [ "$rasupd_id" != "$rasupd_trial" ]; then set rasupd_left=""; fi
{}  else set default=1
  fi
  if [ "$default" = "0" ]; then
    if save_env -f $prefix/grubenv rasupd_left; then true; else set default=1; fi
  fi
  set fallback=1
fi
)",
      separate_boot ? "" : "/boot", count_down());
}

std::string menu_text(const std::vector<Entry>& entries, const std::string& trial) {
  std::string out = "# Made by rasupd from the boot entries beside this file; it is made anew at every change.\n";
  if (!trial.empty()) out += std::string(kTrialPrefix) + in_quotes(trial) + "\n";
  for (const Entry& entry : entries) {
    std::string arguments;
    for (std::string& word : split_options(entry.options)) arguments += " " + argument(std::move(word));
    out += fmt::format("menuentry {} {{\n  linux {}{}\n", in_quotes(entry.title), grub_path(entry.kernel), arguments);
    if (!entry.initrd.empty()) out += fmt::format("  initrd {}\n", grub_path(entry.initrd));
    out += "}\n";
  }
  return out;
}

std::string trial_of_menu(std::string_view menu) {
  for (const std::string& line : split(menu, '\n')) {
    if (!line.starts_with(kTrialPrefix)) continue;
    std::string id = line.substr(kTrialPrefix.size());
    std::erase(id, '\'');
    return id;
  }
  return "";
}

}  // namespace rasupd::boot::grub
