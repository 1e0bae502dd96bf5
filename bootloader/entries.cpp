#include "bootloader/entries.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>

#include "base/files.hpp"
#include "base/text.hpp"

namespace rasupd::boot {
namespace {

// An entry is a few lines; the kernel takes 4 KiB of arguments at most (COMMAND_LINE_SIZE is 2048 or 4096).
constexpr std::size_t kMaxEntryBytes = 64u << 10;
constexpr std::string_view kEntries = "boot/loader/entries";

bool is_ours(std::string_view name) {
  return name.starts_with("ostree-") && name.ends_with(".conf");
}

bool is_checksum(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Fills what `ostree=/ostree/boot.N/STATEROOT/BOOTCSUM/SERIAL` says; false when it is of another shape.
bool parse_ostree(Entry& entry) {
  const auto parts = split(entry.ostree, '/');
  if (parts.size() != 6 || !parts[0].empty() || parts[1] != "ostree" || !parts[2].starts_with("boot.")) {
    return false;
  }
  if (parts[3].empty() || parts[3] == ".." || parts[3] == "." || !is_checksum(parts[4])) return false;
  if (parts[5].empty() || parts[5].find_first_not_of("0123456789") != std::string::npos) return false;
  entry.stateroot = parts[3];
  entry.boot_checksum = parts[4];
  return true;
}

void read_line(Entry& entry, std::string_view line, bool* has_version) {
  line = trim(line);
  if (line.empty() || line.front() == '#') return;
  const auto gap = line.find_first_of(" \t");
  const std::string_view key = line.substr(0, gap);
  const std::string_view value = gap == std::string_view::npos ? "" : trim(line.substr(gap));
  if (key == "title") entry.title = value;
  if (key == "linux") entry.kernel = value;
  if (key == "initrd" && entry.initrd.empty()) entry.initrd = value;
  if (key == "options") entry.options = value;
  if (key == "version") {
    const auto end = value.data() + value.size();
    const auto read = std::from_chars(value.data(), end, entry.version);
    *has_version = read.ec == std::errc() && read.ptr == end;
  }
}

tl::unexpected<Error> bad_link(const Entry& entry, std::string_view what) {
  return fail(Kind::Boot,
              fmt::format("boot entry {}: its ostree={} leads nowhere: {}", entry.file,
                          printable(entry.ostree), what),
              fmt::format("remove boot/loader/entries/{} if another entry boots this machine, or restore the "
                          "deployment from a backup",
                          entry.file));
}

}  // namespace

std::vector<std::string> split_options(std::string_view options) {
  std::vector<std::string> out;
  std::string word;
  bool quoted = false;
  for (const char c : options) {
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == ' ' || c == '\t')) {
      if (!word.empty()) out.push_back(std::move(word));
      word.clear();
    } else {
      word += c;
    }
  }
  if (!word.empty()) out.push_back(std::move(word));
  return out;
}

Result<Entry> parse_entry(std::string_view text, const std::string& file) {
  Entry entry;
  entry.file = file;
  bool has_version = false;
  for (const std::string& line : split(text, '\n')) read_line(entry, line, &has_version);
  for (const std::string& option : split_options(entry.options)) {
    if (option.starts_with("ostree=") && entry.ostree.empty()) entry.ostree = option.substr(7);
  }
  const auto bad = [&](std::string_view why) {
    return fail(Kind::Boot, fmt::format("boot entry {}: {}", printable(file), why),
                fmt::format("repair or remove boot/loader/entries/{}", printable(file)));
  };
  if (entry.ostree.empty()) return bad("no ostree= among its options");
  if (!parse_ostree(entry)) return bad("malformed ostree=" + printable(entry.ostree));
  if (entry.kernel.empty()) return bad("no kernel (linux)");
  if (!has_version) return bad("no version number");
  return entry;
}

Result<Menu> read_menu(const std::string& sysroot) {
  Menu menu;
  const std::string directory = path_join(sysroot, kEntries);
  menu.present = exists(directory);
  for (const std::string& name : TRY(list_directory(directory))) {
    const auto text = read_file(path_join(directory, name), kMaxEntryBytes, Kind::Boot);
    if (!text) {
      // A subdirectory or a huge file that is not ours concerns nobody here.
      if (is_ours(name)) menu.problems.push_back(text.error().message);
      continue;
    }
    if (!*text) continue;  // went away meanwhile
    if (!is_ours(name)) {
      // What a writer has not yet renamed into place is not an entry (libostree and rasupd write
      // NAME.XXXXXX).
      if (name.ends_with(".conf") && name.front() != '.') menu.foreign.push_back({name, **text});
      continue;
    }
    auto entry = parse_entry(**text, name);
    if (entry) {
      menu.entries.push_back(std::move(*entry));
    } else {
      menu.problems.push_back(entry.error().message);
    }
  }
  std::stable_sort(menu.entries.begin(), menu.entries.end(),
                   [](const Entry& a, const Entry& b) { return a.version > b.version; });
  return menu;
}

Result<std::string> resolve(const std::string& sysroot, const Entry& entry) {
  const std::string link = path_join(sysroot, entry.ostree);
  char target[PATH_MAX];
  const ssize_t length = ::readlink(link.c_str(), target, sizeof target);
  if (length < 0) return bad_link(entry, "the link is missing");
  const auto parts = split(std::string_view(target, static_cast<std::size_t>(length)), '/');
  // ../../../deploy/STATEROOT/deploy/CHECKSUM.SERIAL
  const std::size_t n = parts.size();
  if (n < 4 || parts[n - 4] != "deploy" || parts[n - 2] != "deploy" || parts[n - 3] != entry.stateroot) {
    return bad_link(entry, "the link is not one of libostree's");
  }
  const std::string directory = fmt::format("ostree/deploy/{}/deploy/{}", parts[n - 3], parts[n - 1]);
  struct stat info {};
  if (::stat(path_join(sysroot, directory).c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return bad_link(entry, directory + " is missing");
  }
  return directory;
}

std::string boot_file(const std::string& sysroot, const std::string& path) {
  std::string direct = path_join(path_join(sysroot, "boot"), path);
  if (path.starts_with("/boot/") && !exists(direct)) return path_join(sysroot, path);
  return direct;
}

}  // namespace rasupd::boot
