#pragma once
// Login: what a registry gets to see as Authorization, one per source. Takes challenges, fetches tokens. The
// rules: nothing is sent before a challenge; a password goes to the registry's own host, or to a token server
// that is known to belong to it; tokens travel as the registry itself does (https, or http where it is
// insecure). Thread-safe.

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/world.hpp"
#include "fence/http.hpp"
#include "fence/url.hpp"
#include "source/auth_file.hpp"
#include "source/challenge.hpp"

namespace rasupd {

/// What came of one attempt to reach a server: retry may be worth it or not.
struct Failure {
  Error error;
  bool transient = false;
  std::optional<std::chrono::seconds> retry_after{};
};

class Login {
 public:
  /// `host` is the reference's, the name of the credentials. `insecure`: its certificate is not checked.
  Login(const World& world, HttpClient& http, std::string host, std::string repository, bool insecure)
      : world_(world),
        http_(http),
        host_(std::move(host)),
        repository_(std::move(repository)),
        insecure_(insecure) {}

  struct Header {
    std::string value;        ///< "Authorization: …", or empty
    unsigned generation = 0;  ///< hand it to answer() when this header was not good enough
  };
  Header header();

  /// Takes the 401 that `registry` gave to a request sent with `used`. Afterwards header() is another one;
  /// if not, the failure says why (Denied, Offline, Config).
  std::optional<Failure> answer(const Url& registry, const HttpResponse& refused, const Header& used);

  /// The error of a final 401 or 403: names registry, repository and credential file. `text` is the server's.
  Error denied(int status, std::string_view text);

  /// `text` without our secrets, in case a server echoes what it was sent.
  std::string redacted(std::string_view text);

 private:
  std::optional<Failure> load_credential();
  std::optional<Failure> fetch_token(const Url& registry, const Challenge& challenge);
  Result<HttpRequest> token_request(const Url& registry, const Challenge& challenge);
  Error denied_locked(std::string_view why);
  std::string redacted_locked(std::string_view text) const;

  const World& world_;
  HttpClient& http_;
  const std::string host_, repository_;
  const bool insecure_;
  std::mutex mutex_;
  bool loaded_ = false;
  std::optional<Credential> credential_;
  std::string header_, scheme_;
  unsigned generation_ = 0;
  std::vector<std::string> secrets_;
};

/// May the password of `host` go to a token server at `realm`? The same host name, or a pair that is publicly
/// known.
bool may_send_password(const std::string& host, const Url& registry, const Url& realm);

/// A transport failure as a Failure: all but certificates, local files and a stop may pass.
Failure transport_failure(HttpFault fault, Error error);

/// One line of a registry's error body: errors[0].code and message, made printable; empty when it is not
/// JSON.
std::string server_error_text(std::string_view body);

}  // namespace rasupd
