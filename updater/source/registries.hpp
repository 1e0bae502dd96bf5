#pragma once
// containers-registries.conf(5), version 2: which physical places stand behind a reference, and how they may
// be spoken to. Of the file's keys `prefix`, `location`, `insecure` and `blocked` are heeded.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "image/reference.hpp"

namespace rasupd {

/// One place to fetch from.
struct Endpoint {
  std::string host;  ///< host[:port] as in the reference or the file
  std::string repository;
  bool insecure = false;  ///< no TLS verification, and plain http where https cannot be had
};

struct RegistryRule {
  std::string prefix;    ///< "host", "host/ns/repo" or "*.example.com"
  std::string location;  ///< replaces the prefix; empty for a "*." prefix: nothing is replaced
  bool insecure = false, blocked = false;
  std::string file;
};

class Registries {
 public:
  /// etc/containers/registries.conf, then registries.conf.d/*.conf beneath `config_root`; a later entry of
  /// the same prefix replaces the earlier. Error Config naming file and line.
  static Result<Registries> load(const std::string& config_root);
  /// Adds one file's entries.
  Result<void> add(std::string_view toml, const std::string& path);

  /// The places in the order to try them, the origin last; never empty. Today that is the origin alone.
  /// Error Config when the registry is blocked.
  Result<std::vector<Endpoint>> endpoints(const Reference& reference) const;

 private:
  const RegistryRule* find(const std::string& name) const;

  std::vector<RegistryRule> rules_;
};

}  // namespace rasupd
