#include "source/auth_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace rasupd {
namespace {

/// A fleet's file holds a handful of entries; tokens of cloud registries are a few KiB each.
constexpr std::size_t kMaxAuthFile = 1 << 20;

Error bad_entry(const std::string& path, const std::string& key, std::string_view why) {
  return {Kind::Config, fmt::format("{}: entry \"{}\": {}", path, printable(key, 200), why),
          "write it with podman login --authfile " + path};
}

/// "https://host/v1/" and "host/" as docker once wrote them; a bare host stays.
std::string legacy_host(std::string_view key) {
  for (const std::string_view scheme : {"https://", "http://"})
    if (key.starts_with(scheme))
      return std::string(key.substr(scheme.size(), key.find('/', scheme.size()) - scheme.size()));
  return {};
}

Result<std::optional<Credential>> read_entry(const Json& entry, const std::string& path,
                                             const std::string& key) {
  if (!entry.is_object()) return fail(bad_entry(path, key, "not an object"));
  const std::string what = fmt::format("{}: entry \"{}\"", path, printable(key, 200));
  const auto auth = TRY(json_optional_string(entry, "auth", what, Kind::Config));
  const auto token = TRY(json_optional_string(entry, "identitytoken", what, Kind::Config));
  Credential found;
  found.origin = fmt::format("{} (entry {})", path, printable(key, 200));
  if (token) found.identity_token = *token;
  if (auth && !auth->empty()) {
    auto decoded = base64_decode(*auth);
    if (!decoded) return fail(bad_entry(path, key, "auth is not base64"));
    std::erase(*decoded, '\0');  // docker pads with NUL bytes
    const auto colon = decoded->find(':');
    if (colon == std::string::npos) return fail(bad_entry(path, key, "auth is not USER:PASSWORD in base64"));
    found.username = decoded->substr(0, colon);
    found.password = decoded->substr(colon + 1);
  }
  if (found.identity_token.empty() && found.username.empty()) return std::optional<Credential>{};
  return std::optional(std::move(found));
}

/// host/ns/repo, host/ns, host.
std::vector<std::string> lookup_keys(const std::string& host, const std::string& repository) {
  std::vector<std::string> keys;
  for (std::string key = host + "/" + repository; key.size() > host.size(); key.erase(key.rfind('/')))
    keys.push_back(key);
  keys.push_back(host);
  return keys;
}

/// Docker Hub's entry is written under its API's old name.
bool names_host(const std::string& legacy, const std::string& host) {
  return legacy == host ||
         (host == "docker.io" && (legacy == "index.docker.io" || legacy == "registry-1.docker.io"));
}

bool is_helper_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

Result<std::optional<Credential>> run_helper(const World& world, const std::string& name,
                                             const std::string& path, const std::string& host) {
  const std::string program = "docker-credential-" + name;
  RunLimits limits;
  limits.input = host;
  const auto done = TRY(world.runner.run({program, "get"}, limits)
                            .within(fmt::format("{} (credHelpers of {})", program, path)));
  // The helper protocol says "not there" on standard output (docker/docker-credential-helpers, README).
  if (done.exit_code != 0 && done.out.find("credentials not found") != std::string::npos)
    return std::optional<Credential>{};
  if (done.exit_code != 0)
    return fail(Kind::Config,
                fmt::format("{} (credHelpers of {}) failed for {} with exit code {}", program, path, host,
                            done.exit_code),
                "run it by hand: echo " + host + " | " + program + " get");
  const auto json = TRY(parse_json(done.out, program, Kind::Config, kMaxAuthFile));
  Credential found;
  found.username = TRY(json_string(json, "Username", program, Kind::Config));
  found.password = TRY(json_string(json, "Secret", program, Kind::Config));
  found.origin = fmt::format("{} (credHelpers of {})", program, path);
  if (found.username == "<token>") found.identity_token = std::exchange(found.password, {});
  return std::optional(std::move(found));
}

}  // namespace

std::vector<std::string> auth_file_paths(const std::string& config_root) {
  std::vector<std::string> paths;
  for (const char* path : {"etc/rasupd/auth.json", "etc/ostree/auth.json", "run/ostree/auth.json",
                           "usr/lib/ostree/auth.json", "run/containers/0/auth.json"})
    paths.push_back(path_join(config_root, path));
  return paths;
}

Result<std::optional<Credential>> parse_auth_file(std::string_view text, const std::string& path,
                                                  const std::string& host, const std::string& repository,
                                                  std::string* helper) {
  const Json json = TRY(parse_json(text, path, Kind::Config, kMaxAuthFile));
  if (!json.is_object()) return fail(Kind::Config, path + ": not a JSON object");
  const auto helpers = TRY(json_string_map(json, "credHelpers", path, Kind::Config));
  if (const auto found = helpers.find(host); found != helpers.end()) {
    if (!is_helper_name(found->second))
      return fail(bad_entry(path, host, "not the name of a credential helper"));
    *helper = found->second;
    return std::optional<Credential>{};
  }
  const auto auths = json.find("auths");
  if (auths == json.end() || auths->is_null()) return std::optional<Credential>{};
  if (!auths->is_object()) return fail(Kind::Config, path + ": \"auths\" is not an object");
  for (const auto& key : lookup_keys(host, repository)) {
    const auto entry = auths->find(key);
    if (entry == auths->end()) continue;
    auto found = TRY(read_entry(*entry, path, key));
    if (found) return found;
  }
  for (const auto& [key, entry] : auths->items())
    if (const auto legacy = legacy_host(key); !legacy.empty() && names_host(legacy, host))
      return read_entry(entry, path, key);
  return std::optional<Credential>{};
}

Result<std::optional<Credential>> find_credential(const World& world, const std::string& host,
                                                  const std::string& repository) {
  for (const auto& path : auth_file_paths(world.config_root)) {
    const auto text = TRY(read_file(path, kMaxAuthFile, Kind::Config));
    if (!text) continue;
    std::string helper;
    auto found = TRY(parse_auth_file(*text, path, host, repository, &helper));
    if (helper.empty()) return found;
    return run_helper(world, helper, path, host);
  }
  return std::optional<Credential>{};
}

}  // namespace rasupd
