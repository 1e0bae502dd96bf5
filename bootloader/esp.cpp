#include "bootloader/esp.hpp"

#include <fmt/format.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/files.hpp"
#include "base/text.hpp"
#include "bootloader/entries.hpp"
#include "bootloader/entry_files.hpp"

namespace rasupd::boot::esp {
namespace {

constexpr const char* kEntries = "loader/entries";
constexpr std::size_t kMaxEntryBytes = 64u << 10;
constexpr std::string_view kPrefix = "ostree-";
constexpr std::string_view kSuffix = ".conf";
constexpr std::size_t kDigits = 10;
/// A comment, since systemd-boot and bootctl(1) complain about keys they do not know.
constexpr std::string_view kDeployment = "# rasupd-deployment ";

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool take_number(std::string_view& text, std::size_t max_digits, std::uint64_t& out) {
  const auto end = std::min(text.find_first_not_of("0123456789"), text.size());
  if (end == 0 || end > max_digits) return false;
  std::from_chars(text.data(), text.data() + end, out);
  text.remove_prefix(end);
  return true;
}

/// The parts of a name of ours; nullopt when it is not one.
std::optional<EspEntry> parse_name(const std::string& file) {
  const std::string name = lower(file);
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  std::string_view rest(name);
  rest.remove_prefix(kPrefix.size());
  rest.remove_suffix(kSuffix.size());
  EspEntry out;
  if (rest.substr(0, kDigits).size() != kDigits || !take_number(rest, kDigits, out.number))
    return std::nullopt;
  if (!rest.empty()) {
    std::uint64_t left = 0, done = 0;
    if (rest.front() != '+') return std::nullopt;
    rest.remove_prefix(1);
    if (!take_number(rest, 4, left)) return std::nullopt;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      if (!take_number(rest, 4, done)) return std::nullopt;
    }
    if (!rest.empty()) return std::nullopt;
    out.left = static_cast<unsigned>(left);
  }
  out.entry.file = file;
  return out;
}

/// The value of the first `key` in an entry's text.
std::string value_of(std::string_view text, std::string_view key) {
  for (const std::string& raw : split(text, '\n')) {
    const std::string_view line = trim(raw);
    if (!line.starts_with(key) || line.size() <= key.size()) continue;
    if (line[key.size()] == ' ' || line[key.size()] == '\t')
      return std::string(trim(line.substr(key.size())));
  }
  return "";
}

bool fill(Entry& entry, std::string_view text) {
  entry.title = value_of(text, "title");
  entry.kernel = value_of(text, "linux");
  entry.initrd = value_of(text, "initrd");
  entry.options = value_of(text, "options");
  entry.deployment = value_of(text, trim(kDeployment));
  for (const std::string& option : split_options(entry.options)) {
    if (option.starts_with("ostree=") && entry.ostree.empty()) entry.ostree = option.substr(7);
  }
  const auto parts = split(entry.ostree, '/');
  if (parts.size() == 6) {
    entry.stateroot = parts[3];
    entry.boot_checksum = parts[4];
  }
  return !entry.ostree.empty();
}

}  // namespace

Result<EspMenu> read_esp(const std::string& esp) {
  EspMenu menu;
  const std::string directory = path_join(esp, kEntries);
  for (const std::string& name : TRY(list_directory(directory))) {
    if (!lower(name).ends_with(kSuffix) || name.front() == '.') continue;
    auto ours = parse_name(name);
    const auto text = read_file(path_join(directory, name), kMaxEntryBytes, Kind::Boot);
    if (!text && ours) return fail(Error(text.error()));
    if (!text || !*text) continue;
    if (ours && fill(ours->entry, **text)) {
      menu.ours.push_back(std::move(*ours));
      continue;
    }
    const std::string key = value_of(**text, "sort-key");
    if (!key.empty() && key < kSortKey) menu.stronger.push_back(name);
    menu.others += **text + "\n";
  }
  std::stable_sort(menu.ours.begin(), menu.ours.end(),
                   [](const EspEntry& a, const EspEntry& b) { return a.number > b.number; });
  return menu;
}

std::string file_name(std::uint64_t number, std::optional<unsigned> left) {
  return fmt::format("{}{:010}{}{}", kPrefix, number, left ? fmt::format("+{}", *left) : "", kSuffix);
}

std::string entry_text(const Entry& entry, std::uint64_t number) {
  std::string out =
      fmt::format("{}{}\ntitle {}\nversion {:010}\nsort-key {}\nlinux {}\n", kDeployment, entry.deployment,
                  one_line(entry.title), number, kSortKey, below_boot(entry.kernel));
  if (!entry.initrd.empty()) out += fmt::format("initrd {}\n", below_boot(entry.initrd));
  return out + fmt::format("options {}\n", one_line(entry.options));
}

Result<std::string> overriding_default(const std::string& esp, const std::string& first) {
  const auto text = TRY(read_file(path_join(esp, "loader/loader.conf"), kMaxEntryBytes, Kind::Boot));
  const std::string pattern = lower(value_of(text.value_or(""), "default"));
  if (pattern.empty()) return std::string();
  // The name systemd-boot compares with has no counter. A pattern that fits ours takes the first of them.
  const std::string name = lower(first);
  const std::string id = name.substr(0, std::min(name.find('+'), name.size() - kSuffix.size()));
  if (::fnmatch(pattern.c_str(), (id + std::string(kSuffix)).c_str(), 0) == 0) {
    return std::string();
  }
  return fmt::format("{}/loader/loader.conf says `default {}`, which decides instead of the boot entries",
                     esp, printable(pattern));
}

}  // namespace rasupd::boot::esp
