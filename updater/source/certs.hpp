#pragma once
// containers-certs.d(5): authorities and client certificates of one registry host.

#include <string>

#include "fence/http.hpp"

namespace rasupd {

/// The first existing of etc/containers/certs.d/HOST[:PORT] and etc/docker/certs.d/HOST[:PORT] beneath
/// `config_root`; nothing there is an empty value. Error Config: unreadable, or half a client pair.
Result<HttpTls> find_certs(const std::string& config_root, const std::string& host_port);

}  // namespace rasupd
