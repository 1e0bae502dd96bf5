#include "source/registries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
// Without exceptions a failed parse is a value; the macro also picks another inline namespace, so that this
// does not clash with users of the throwing form.
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "base/files.hpp"
#include "base/text.hpp"

namespace rasupd {
namespace {

constexpr std::size_t kMaxConf = 1 << 20;

Error at_line(const std::string& path, const toml::source_region& where, std::string_view why) {
  return {Kind::Config, fmt::format("{}:{}: {}", path, where.begin.line, printable(why)),
          "see containers-registries.conf(5)"};
}

template <class T>
Result<std::optional<T>> member(const toml::table& table, std::string_view key, const std::string& path) {
  const toml::node* node = table.get(key);
  if (node == nullptr) return std::optional<T>{};
  const auto value = node->value_exact<T>();
  if (!value) return fail(at_line(path, node->source(), fmt::format("{} has the wrong type", key)));
  return value;
}

Result<RegistryRule> read_rule(const toml::table& table, const std::string& path) {
  RegistryRule rule;
  rule.file = path;
  const auto prefix = TRY(member<std::string>(table, "prefix", path));
  const auto location = TRY(member<std::string>(table, "location", path));
  rule.insecure = TRY(member<bool>(table, "insecure", path)).value_or(false);
  rule.blocked = TRY(member<bool>(table, "blocked", path)).value_or(false);
  rule.location = location.value_or("");
  rule.prefix = prefix.value_or(rule.location);
  while (rule.prefix.ends_with('/')) rule.prefix.pop_back();
  while (rule.location.ends_with('/')) rule.location.pop_back();
  const bool wildcard = rule.prefix.starts_with("*.");
  if (rule.prefix.empty())
    return fail(at_line(path, table.source(), "a registry has neither prefix nor location"));
  if (rule.location.empty() && !wildcard) rule.location = rule.prefix;
  return rule;
}

/// Does `prefix` cover host/repo `name`? As containers-registries.conf(5) has it: whole components only.
bool covers(const std::string& prefix, const std::string& name) {
  if (!prefix.starts_with("*."))
    return name == prefix || (name.starts_with(prefix) && name[prefix.size()] == '/');
  const std::string host = name.substr(0, name.find_first_of("/:"));
  return host.ends_with(prefix.substr(1)) && host.size() > prefix.size() - 1;
}

}  // namespace

Result<void> Registries::add(std::string_view text, const std::string& path) {
  const auto parsed = toml::parse(text, path);
  if (!parsed) return fail(at_line(path, parsed.error().source(), parsed.error().description()));
  const toml::node* list = parsed.table().get("registry");
  if (list == nullptr) return {};
  if (!list->is_array()) return fail(at_line(path, list->source(), "registry is not an array of tables"));
  for (const auto& node : *list->as_array()) {
    if (!node.is_table()) return fail(at_line(path, node.source(), "registry is not an array of tables"));
    auto rule = TRY(read_rule(*node.as_table(), path));
    std::erase_if(rules_, [&](const RegistryRule& old) { return old.prefix == rule.prefix; });
    rules_.push_back(std::move(rule));
  }
  return {};
}

Result<Registries> Registries::load(const std::string& config_root) {
  Registries all;
  const std::string main = path_join(config_root, "etc/containers/registries.conf");
  if (const auto text = TRY(read_file(main, kMaxConf, Kind::Config))) TRY(all.add(*text, main));
  const std::string directory = main + ".d";
  for (const auto& name : TRY(list_directory(directory))) {
    if (!name.ends_with(".conf")) continue;
    const std::string path = path_join(directory, name);
    if (const auto text = TRY(read_file(path, kMaxConf, Kind::Config))) TRY(all.add(*text, path));
  }
  return all;
}

const RegistryRule* Registries::find(const std::string& name) const {
  const RegistryRule* best = nullptr;
  for (const auto& rule : rules_)
    if (covers(rule.prefix, name) && (best == nullptr || rule.prefix.size() > best->prefix.size()))
      best = &rule;
  return best;
}

Result<std::vector<Endpoint>> Registries::endpoints(const Reference& reference) const {
  std::string name = reference.host + "/" + reference.repository;
  const RegistryRule* rule = find(name);
  bool insecure = false;
  if (rule != nullptr) {
    if (rule->blocked)
      return fail(Kind::Config, fmt::format("{} is blocked by {}", rule->prefix, rule->file),
                  "remove `blocked = true` there");
    insecure = rule->insecure;
    if (!rule->location.empty() && !rule->prefix.starts_with("*."))
      name = rule->location + name.substr(rule->prefix.size());
  }
  const auto slash = name.find('/');
  if (slash == std::string::npos || slash + 1 == name.size())
    return fail(Kind::Config, fmt::format("{}: location turns {} into {}, which has no repository",
                                          rule ? rule->file : "", reference.repository, name));
  return std::vector<Endpoint>{{name.substr(0, slash), name.substr(slash + 1), insecure}};
}

}  // namespace rasupd
