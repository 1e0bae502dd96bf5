#pragma once
// Url: an absolute http(s) URL as libcurl understands it. The parser that judges a URL is the one that later
// connects to it, so that no spelling means one host here and another there.

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace rasupd {

struct Url {
  std::string scheme;  ///< "https" or "http"
  std::string host;    ///< lower case, IPv6 in brackets, without port
  unsigned port = 0;   ///< the scheme's default filled in
  std::string text;    ///< the whole URL, without fragment

  /// Errors: Offline (it is only ever a server that sends bad ones): not absolute http(s), or with user and
  /// password in it.
  static Result<Url> parse(std::string_view text);
  /// RFC 3986 section 5: what `reference` means when it is found at this URL. Errors as parse().
  Result<Url> resolve(std::string_view reference) const;
  /// The same URL with "key=value" appended to its query, the value percent-encoded.
  Result<Url> with_query(std::string_view key, std::string_view value) const;

  /// host, with ":port" where it is not the scheme's own: the name of a certs.d directory.
  std::string authority() const;
  bool same_origin(const Url& other) const {
    return scheme == other.scheme && host == other.host && port == other.port;
  }
  /// For messages: scheme, authority and path. Queries hold signatures and tokens.
  std::string shown() const;
};

}  // namespace rasupd
