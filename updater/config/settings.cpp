#include "config/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/files.hpp"
#include "base/text.hpp"
#include "fence/keyfile.hpp"

namespace rasupd {
namespace {

/// A configuration file is written by people; more than this is a mistake or an attack.
constexpr std::size_t kMaxConfigFile = 256u << 10;

using Setter = bool (*)(Settings&, const std::string&);

bool to_unsigned(const std::string& text, std::uint64_t min, std::uint64_t max, std::uint64_t& out) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max) return false;
  out = value;
  return true;
}

/// A byte count: a whole number with an optional K, M or G of 1024.
bool to_bytes(const std::string& text, std::uint64_t& out) {
  if (text.empty()) return false;
  const auto unit = std::string_view("KMG").find(text.back());
  const bool scaled = unit != std::string_view::npos;
  std::uint64_t value = 0;
  if (!to_unsigned(scaled ? text.substr(0, text.size() - 1) : text, 0, 1ull << 50, value)) return false;
  out = scaled ? value << (10 * (unit + 1)) : value;
  return true;
}

bool set_scopes(Settings& s, const std::string& text) {
  s.unverified_scopes.clear();
  for (const std::string& part : split(text, ';')) {
    if (!trim(part).empty()) s.unverified_scopes.emplace_back(trim(part));
  }
  return true;
}

template <unsigned Settings::*field, unsigned min, unsigned max>
bool set_number(Settings& s, const std::string& text) {
  std::uint64_t value = 0;
  if (!to_unsigned(text, min, max, value)) return false;
  s.*field = static_cast<unsigned>(value);
  return true;
}

bool set_mark_good(Settings& s, const std::string& text) {
  s.mark_good_external = text == "external";
  return text == "auto" || text == "external";
}

/// Every key this version acts on.
const std::map<std::string, Setter>& setters() {
  static const std::map<std::string, Setter> table = {
      {"trust.unverified_scopes", set_scopes},
      {"import.parallel", set_number<&Settings::parallel, 1, 16>},
      {"download.retries", set_number<&Settings::retries, 0, 100>},
      {"download.stall_seconds", set_number<&Settings::stall_seconds, 1, 3600>},
      {"health.tries", set_number<&Settings::tries, 1, 9>},
      {"health.check_timeout", set_number<&Settings::check_timeout, 1, 86400>},
      {"health.deadline", set_number<&Settings::deadline, 1, 86400>},
      {"health.mark_good", set_mark_good},
      {"space.reserve", [](Settings& s, const std::string& v) { return to_bytes(v, s.reserve); }},
  };
  return table;
}

/// Keys of the contract whose rooms are not built yet: named when met, because silence about a setting that
/// does nothing would be a lie, but no reason to refuse an upgrade.
constexpr std::string_view kInert[] = {
    "trust.max_age",
    "trust.identity_less_bundles",
    "import.nice",
    "import.idle_io",
    "import.chunked",
    "reboot.strategy",
    "reboot.windows",
    "reboot.inhibit_max",
    "reboot.jitter",
    "lock.kind",
    "lock.url",
    "lock.urls",
    "lock.group",
    "lock.id",
    "lock.max_down",
    "lock.quorum",
    "lock.allow_quorum_loss",
    "lock.ca",
    "lock.cert",
    "lock.key",
    "hooks.timeout",
    "role.state_dir",
    "role.seed_file",
    "role.seed_label",
    "role.seed_role_key",
    "role.cloud_config_block",
    "role.http_allowed",
};

/// The line of `key` in `[group]`, 0 when it is not found.
std::size_t line_of(std::string_view text, std::string_view group, std::string_view key) {
  bool inside = false;
  std::size_t number = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (line.size() > 1 && line.front() == '[') inside = line.substr(1, line.find(']') - 1) == group;
    if (inside && trim(line.substr(0, line.find('='))) == key) return number;
  }
  return 0;
}

Result<void> complain(Settings& settings, bool strict, const std::string& problem) {
  if (strict) return fail(Kind::Config, problem, "rasupd.conf(5) lists the keys and their values");
  settings.warnings.push_back(problem);
  return {};
}

Result<void> read_one(Settings& settings, const std::string& path, bool strict) {
  const auto text = read_file(path, kMaxConfigFile, Kind::Config);
  if (!text) return complain(settings, strict, text.error().message);
  if (!*text) return {};
  auto file = KeyFile::parse(**text, path);
  if (!file) return complain(settings, strict, file.error().message);
  for (const std::string& group : file->groups()) {
    for (const std::string& key : file->keys(group)) {
      const auto setter = setters().find(group + "." + key);
      const std::string where = fmt::format("{}:{}", path, line_of(**text, group, key));
      if (std::find(std::begin(kInert), std::end(kInert), group + "." + key) != std::end(kInert)) {
        settings.warnings.push_back(
            fmt::format("{}: {}.{} has no effect in this version", where, group, key));
        continue;
      }
      if (setter == setters().end()) {
        TRY(complain(settings, strict, fmt::format("{}: unknown key \"{}\" in [{}]", where, key, group)));
        continue;
      }
      const auto value = file->get(group, key);
      if (!value || !setter->second(settings, *value)) {
        TRY(complain(
            settings, strict,
            fmt::format("{}: bad value \"{}\" for {}.{}", where, printable(value.value_or("")), group, key)));
      }
    }
  }
  return {};
}

}  // namespace

Result<Settings> load_settings(const std::string& config_root, bool strict) {
  Settings settings;
  for (const char* directory : {"usr/lib/rasupd", "etc/rasupd"}) {
    const std::string base = path_join(config_root, directory);
    TRY(read_one(settings, path_join(base, "rasupd.conf"), strict));
    const std::string drop_ins = path_join(base, "rasupd.conf.d");
    for (const std::string& name : TRY(list_directory(drop_ins))) {
      if (name.ends_with(".conf")) TRY(read_one(settings, path_join(drop_ins, name), strict));
    }
  }
  return settings;
}

}  // namespace rasupd
