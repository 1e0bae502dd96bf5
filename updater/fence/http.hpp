#pragma once
// HTTP by libcurl, pulled by the caller: no threads, no callbacks outside, at most 1 MiB held per transfer.
// One request is one answer: redirects, credentials and retries are the caller's business. Proxies come from
// the environment (curl(1), ENVIRONMENT); netrc, cookies and compression are never used.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rasupd {

/// What certs.d(5) adds for one host.
struct HttpTls {
  std::string ca_pem;                   ///< trusted in addition to the system's authorities
  std::string client_cert, client_key;  ///< paths; both or none
  bool verify = true;                   ///< false only for a registry the operator calls insecure
};

struct HttpRequest {
  std::string method = "GET";  ///< GET, HEAD or POST
  std::string url;
  std::vector<std::string> headers;  ///< "Name: value"
  std::string body;                  ///< POST
  bool allow_http = false;           ///< otherwise https only
  HttpTls tls{};
};

struct HttpResponse {
  int status = 0;
  std::multimap<std::string, std::string> headers;  ///< names in lower case

  /// The first header of that (lower-case) name; empty when there is none.
  std::string header(const std::string& name) const;
  /// Content-Length, nullopt when absent or not a number.
  std::optional<std::uint64_t> length() const;
};

/// Why a transfer failed. `certificate` will not mend by itself; `setup` is a local file or URL that is bad.
enum class HttpFault { none, resolve, connect, tls, certificate, stall, cut, flood, setup, cancelled };

class HttpClient;

/// One request. Not thread-safe; may be moved between threads, and must not outlive its client.
class HttpTransfer {
 public:
  ~HttpTransfer();
  HttpTransfer(HttpTransfer&&) noexcept;
  HttpTransfer& operator=(HttpTransfer&&) noexcept;

  /// Sends and waits for the final header. Errors: Offline; Config (client certificate); Cancelled within
  /// about 100 ms of a stop. fault() then says more.
  Result<HttpResponse> open();
  /// Next bytes of the body, 0 at its end. Errors as open(). A body shorter than its Content-Length or
  /// without its last chunk is a `cut`.
  Result<std::size_t> read(std::span<std::byte> into);
  /// The rest of the body, at most `max_bytes`: nullopt when it is longer.
  Result<std::optional<std::string>> read_all(std::size_t max_bytes);
  HttpFault fault() const;

  struct Body;

 private:
  friend class HttpClient;
  explicit HttpTransfer(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

struct HttpLimits {
  std::chrono::seconds connect{30};  ///< name, TCP and TLS together
  std::chrono::seconds stall{30};    ///< less than a byte a second for this long ends a transfer
};

/// A pool of connections. Thread-safe.
class HttpClient {
 public:
  explicit HttpClient(HttpLimits limits);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  HttpTransfer start(HttpRequest request, std::stop_token stop);

  struct Pool;

 private:
  HttpLimits limits_;
  std::shared_ptr<Pool> pool_;
};

}  // namespace rasupd
