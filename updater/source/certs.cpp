#include "source/certs.hpp"

#include "base/files.hpp"

namespace rasupd {
namespace {

constexpr std::size_t kMaxCertificates = 4 << 20;

bool has_suffix(const std::string& name, std::string_view suffix) {
  return name.size() > suffix.size() && name.ends_with(suffix);
}

Result<void> add_file(HttpTls& tls, const std::string& directory, const std::string& name) {
  const std::string path = path_join(directory, name);
  if (has_suffix(name, ".crt")) {
    const auto text = TRY(read_file(path, kMaxCertificates, Kind::Config));
    if (!text) return fail(Kind::Config, path + ": cannot be read");
    tls.ca_pem += *text + "\n";
    return {};
  }
  const std::string stem = name.substr(0, name.rfind('.'));
  if (has_suffix(name, ".cert")) {
    const std::string key = path_join(directory, stem + ".key");
    if (!exists(key)) return fail(Kind::Config, path + ": its key " + key + " is missing");
    if (!tls.client_cert.empty()) return {};  // the first pair is used
    tls.client_cert = path;
    tls.client_key = key;
  } else if (has_suffix(name, ".key") && !exists(path_join(directory, stem + ".cert"))) {
    return fail(Kind::Config,
                path + ": its certificate " + path_join(directory, stem + ".cert") + " is missing");
  }
  return {};
}

}  // namespace

Result<HttpTls> find_certs(const std::string& config_root, const std::string& host_port) {
  HttpTls tls;
  if (host_port.find('/') != std::string::npos || host_port.empty() || host_port.front() == '.') return tls;
  for (const char* base : {"etc/containers/certs.d", "etc/docker/certs.d"}) {
    const std::string directory = path_join(path_join(config_root, base), host_port);
    if (!exists(directory)) continue;
    for (const auto& name : TRY(list_directory(directory))) TRY(add_file(tls, directory, name));
    return tls;
  }
  return tls;
}

}  // namespace rasupd
