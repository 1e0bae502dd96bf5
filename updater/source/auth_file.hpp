#pragma once
// Credentials of containers-auth.json(5), from the places that exist at boot (contract, section 4). Reads
// files and may run a credential helper; changes nothing. Error Config names the file, never a secret.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/world.hpp"

namespace rasupd {

struct Credential {
  std::string username, password;
  std::string identity_token;  ///< an OAuth2 refresh token instead of a password
  std::string origin;          ///< for messages: "FILE (entry KEY)"
};

/// The files that are looked for, in order, beneath `config_root`.
std::vector<std::string> auth_file_paths(const std::string& config_root);

/// What one file says about `host`/`repository`: keys host/ns/repo, host/ns, host, then the legacy spellings
/// of the host (https://host/v1/). nullopt when it says nothing. `helper` gets the name of the credHelpers
/// entry of the host, which goes before everything else; then the result is nullopt.
Result<std::optional<Credential>> parse_auth_file(std::string_view text, const std::string& path,
                                                  const std::string& host, const std::string& repository,
                                                  std::string* helper);

/// The first existing file's answer, running `docker-credential-NAME get` where it says so. nullopt: none.
Result<std::optional<Credential>> find_credential(const World& world, const std::string& host,
                                                  const std::string& repository);

}  // namespace rasupd
