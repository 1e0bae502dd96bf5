#include "source/login.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/text.hpp"
#include "source/certs.hpp"
#include "source/retry.hpp"

namespace rasupd {
namespace {

/// Cloud registries' tokens reach some ten KiB.
constexpr std::size_t kMaxTokenReply = 256 << 10;

/// Token servers under another name than their registry's, by their operators' documentation.
struct KnownPair {
  std::string_view registry, realm;
};
constexpr KnownPair kKnownPairs[] = {
    {"docker.io", "auth.docker.io"},
    {"registry.gitlab.com", "gitlab.com"},
};

bool is_header_value(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

std::string form_encode(std::string_view text) {
  std::string out;
  for (const unsigned char c : text)
    if (std::isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~')
      out += static_cast<char>(c);
    else
      out += fmt::format("%{:02X}", c);
  return out;
}

std::string basic(const Credential& credential) {
  return "Basic " + base64_encode(credential.username + ":" + credential.password);
}

Failure final_failure(Error error) {
  return {std::move(error), false, {}};
}

std::string param(const Challenge& challenge, const char* name) {
  const auto found = challenge.params.find(name);
  return found == challenge.params.end() ? "" : found->second;
}

}  // namespace

Failure transport_failure(HttpFault fault, Error error) {
  const bool transient = fault != HttpFault::certificate && fault != HttpFault::setup &&
                         fault != HttpFault::cancelled && fault != HttpFault::flood;
  return {std::move(error), transient, {}};
}

std::string server_error_text(std::string_view body) {
  const auto json = parse_json(body, "error", Kind::Failed, 64 << 10);
  if (!json || !json->is_object()) return {};
  const auto errors = json->find("errors");
  if (errors == json->end() || !errors->is_array() || errors->empty() || !(*errors)[0].is_object()) return {};
  const auto text = [&](const char* key) {
    const auto found = (*errors)[0].find(key);
    return found != (*errors)[0].end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const std::string code = text("code"), message = text("message");
  return printable(code.empty() || message.empty() ? code + message : code + ": " + message, 200);
}

bool may_send_password(const std::string& host, const Url& registry, const Url& realm) {
  if (realm.scheme == "http") return realm.same_origin(registry);
  if (realm.host == registry.host) return true;
  return std::any_of(std::begin(kKnownPairs), std::end(kKnownPairs), [&](const KnownPair& pair) {
    return pair.registry == host && pair.realm == realm.authority();
  });
}

Login::Header Login::header() {
  const std::lock_guard lock(mutex_);
  return {header_, generation_};
}

std::string Login::redacted_locked(std::string_view text) const {
  for (const auto& secret : secrets_)
    if (secret.size() > 3 && text.find(secret) != std::string_view::npos)
      return "(text withheld: it repeats a secret)";
  return printable(text);
}

std::string Login::redacted(std::string_view text) {
  const std::lock_guard lock(mutex_);
  return redacted_locked(text);
}

Error Login::denied_locked(std::string_view why) {
  Error error{Kind::Denied, fmt::format("{} refuses {}: {}", host_, repository_, why)};
  if (credential_) {
    error.message += "; credentials from " + credential_->origin;
    error.hint = "check that they are valid and allowed to pull " + repository_;
  } else {
    std::vector<std::string> shown = auth_file_paths(world_.config_root);
    error.message += "; no credentials for it in " + join(shown, ", ");
    error.hint = fmt::format("podman login --authfile {} {}", shown.front(), host_);
  }
  return error;
}

Error Login::denied(int status, std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (!loaded_) {
    loaded_ = true;  // a 403 without any challenge: say where credentials would have been looked for
    if (auto found = find_credential(world_, host_, repository_)) credential_ = std::move(*found);
  }
  std::string why = fmt::format("{} {}", status, status == 401 ? "Unauthorized" : "Forbidden");
  if (!text.empty()) why += fmt::format(" ({})", redacted_locked(text));
  return denied_locked(why);
}

std::optional<Failure> Login::load_credential() {
  if (loaded_) return std::nullopt;
  auto found = find_credential(world_, host_, repository_);
  if (!found) return final_failure(std::move(found.error()));
  loaded_ = true;
  credential_ = std::move(*found);
  if (credential_)
    secrets_ = {credential_->password, credential_->identity_token,
                base64_encode(credential_->username + ":" + credential_->password)};
  return std::nullopt;
}

std::optional<Failure> Login::answer(const Url& registry, const HttpResponse& refused, const Header& used) {
  const std::lock_guard lock(mutex_);
  if (used.generation != generation_) return std::nullopt;  // another thread has got a newer one already
  if (auto failure = load_credential()) return failure;
  const Challenge* bearer = nullptr;
  const Challenge* password = nullptr;
  std::vector<Challenge> all;
  const auto [begin, end] = refused.headers.equal_range("www-authenticate");
  for (auto it = begin; it != end; ++it)
    for (auto& challenge : parse_challenges(it->second)) all.push_back(std::move(challenge));
  for (const auto& challenge : all) {
    if (challenge.scheme == "bearer" && bearer == nullptr) bearer = &challenge;
    if (challenge.scheme == "basic") password = &challenge;
  }
  if (bearer != nullptr) return fetch_token(registry, *bearer);
  // Harbor offers Basic when a token's scope is too small: the password would not help, it would only travel.
  if (password == nullptr || scheme_ == "bearer")
    return final_failure(denied_locked("401 Unauthorized, without a challenge that could be answered"));
  if (!credential_ || credential_->username.empty())
    return final_failure(denied_locked("401 Unauthorized, a password is asked for"));
  if (scheme_ == "basic")
    return final_failure(denied_locked("401 Unauthorized, the password was not accepted"));
  scheme_ = "basic";
  header_ = "Authorization: " + basic(*credential_);
  ++generation_;
  return std::nullopt;
}

Result<HttpRequest> Login::token_request(const Url& registry, const Challenge& challenge) {
  Url realm = TRY(Url::parse(param(challenge, "realm")).within(host_ + ": token server"));
  if (realm.scheme != "https" && !realm.same_origin(registry))
    return fail(Kind::Denied,
                fmt::format("{} asks for a token over plain http from {}; refused", host_, realm.shown()),
                "a token server must be reached by https");
  const bool trusted = may_send_password(host_, registry, realm);
  if (!trusted && credential_)
    world_.progress.note(
        fmt::format("{}: no credentials are sent to the foreign token server {}", host_, realm.authority()));
  const std::string scope = "repository:" + repository_ + ":pull";
  const std::string service = param(challenge, "service");
  HttpRequest request;
  request.allow_http = realm.scheme == "http";
  request.tls = TRY(find_certs(world_.config_root, realm.authority()));
  request.tls.verify = !(insecure_ && realm.same_origin(registry));
  if (trusted && credential_ && !credential_->identity_token.empty()) {
    request.method = "POST";
    request.url = realm.text;
    request.body =
        fmt::format("grant_type=refresh_token&service={}&scope={}&client_id=rasupd&refresh_token={}",
                    form_encode(service), form_encode(scope), form_encode(credential_->identity_token));
    return request;
  }
  if (!service.empty()) realm = TRY(realm.with_query("service", service));
  realm = TRY(realm.with_query("scope", scope));
  if (trusted && credential_) {
    realm = TRY(realm.with_query("account", credential_->username));
    request.headers.push_back("Authorization: " + basic(*credential_));
  }
  request.url = realm.text;
  return request;
}

std::optional<Failure> Login::fetch_token(const Url& registry, const Challenge& challenge) {
  auto request = token_request(registry, challenge);
  if (!request) return final_failure(std::move(request.error()));
  const std::string server = Url::parse(request->url)->shown();
  HttpTransfer transfer = http_.start(std::move(*request), world_.stop);
  auto response = transfer.open();
  if (!response)
    return transport_failure(transfer.fault(), std::move(response.error()).within("token server " + server));
  auto body = transfer.read_all(kMaxTokenReply);
  if (!body)
    return transport_failure(transfer.fault(), std::move(body.error()).within("token server " + server));
  const int status = response->status;
  if (status == 401 || status == 403)
    return final_failure(denied_locked(fmt::format("its token server {} answers {}", server, status)));
  if (status != 200)
    return Failure{{Kind::Offline, fmt::format("token server {}: HTTP status {}", server, status)},
                   is_retryable_status(status),
                   parse_retry_after(response->header("retry-after"), world_.clock.now())};
  const auto json = parse_json(body->value_or(""), "token server " + server, Kind::Offline, kMaxTokenReply);
  std::string token;
  for (const char* name : {"access_token", "token"})
    if (json && json->is_object() && json->contains(name) && (*json)[name].is_string())
      token = (*json)[name].get<std::string>();
  if (!is_header_value(token))
    return final_failure(
        {Kind::Offline, fmt::format("token server {}: its answer holds no usable token", server)});
  secrets_.push_back(token);
  if (secrets_.size() > 16) secrets_.erase(secrets_.begin() + 3);  // the first three are the credential's
  scheme_ = "bearer";
  header_ = "Authorization: Bearer " + token;
  ++generation_;
  return std::nullopt;
}

}  // namespace rasupd
