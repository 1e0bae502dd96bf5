// Which rule of the policy is an image's: the most specific scope (containers-policy.json(5), "Supported
// transports and their scopes").

#include "policy/trust.hpp"

namespace rasupd::policy {
namespace {

/// Scopes of an image in a registry, most specific first: with digest, with tag, repository, its
/// namespaces, host:port, then *.domain from the host's own domain upwards.
std::vector<std::string> docker_scopes(const Identity& image) {
  std::vector<std::string> scopes;
  if (image.digest && image.tag) scopes.push_back(image.name + ":" + *image.tag + "@" + *image.digest);
  if (image.digest) scopes.push_back(image.name + "@" + *image.digest);
  if (image.tag) scopes.push_back(image.name + ":" + *image.tag);
  std::string name = image.name;
  for (;;) {
    scopes.push_back(name);
    const auto slash = name.rfind('/');
    if (slash == std::string::npos) break;
    name.resize(slash);
  }
  if (name.starts_with('[')) return scopes;  // an address has no domain
  name = name.substr(0, name.find(':'));
  for (auto dot = name.find('.'); dot != std::string::npos; dot = name.find('.')) {
    name = name.substr(dot + 1);
    scopes.push_back("*." + name);
  }
  return scopes;
}

/// Scopes of an image on disk: path:tag, path, and its parents; "/" is not one (parse_policy refuses it).
std::vector<std::string> path_scopes(const Identity& image) {
  std::vector<std::string> scopes;
  if (image.tag) scopes.push_back(image.name + ":" + *image.tag);
  for (std::string path = image.name; !path.empty(); path.resize(path.rfind('/'))) {
    scopes.push_back(path);
    if (path.rfind('/') == std::string::npos) break;
  }
  return scopes;
}

}  // namespace

Rule find_rule(const PolicyFile& policy, const Identity& image) {
  const auto transport = policy.transports.find(image.transport);
  if (transport != policy.transports.end()) {
    auto scopes = image.transport == "docker" ? docker_scopes(image) : path_scopes(image);
    scopes.emplace_back();  // the transport's own default
    for (const auto& scope : scopes) {
      const auto rule = transport->second.find(scope);
      if (rule != transport->second.end()) return {image.transport + ":" + scope, rule->second};
    }
  }
  return {"default", policy.default_requirements};
}

}  // namespace rasupd::policy
