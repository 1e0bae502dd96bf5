#include "source/registry.hpp"

#include <fmt/format.h>

#include <random>

#include "base/text.hpp"
#include "fence/hash.hpp"
#include "source/blob_stream.hpp"
#include "source/certs.hpp"
#include "source/retry.hpp"
#include "source/verify.hpp"

namespace rasupd {
namespace {

/// R119. Object stores need one, a login wall or a loop needs many.
constexpr int kMaxRedirects = 5;
constexpr std::size_t kMaxErrorBody = 64 << 10;
/// One header with all types: some proxies look at the first Accept only. Schema 1 is not among them.
const std::string kAccept =
    fmt::format("Accept: {}, {}, {}, {}", kOciIndex, kOciManifest, kDockerList, kDockerManifest);

/// Docker Hub's name in references is not the name of its API, and its official images have a hidden folder.
std::string api_host(const std::string& host) {
  return host == "docker.io" ? "registry-1.docker.io" : host;
}
std::string api_repository(const Endpoint& endpoint) {
  const bool official = endpoint.host == "docker.io" && endpoint.repository.find('/') == std::string::npos;
  return official ? "library/" + endpoint.repository : endpoint.repository;
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

double chance() {
  thread_local std::minstd_rand generator{std::random_device{}()};
  return std::uniform_real_distribution<double>(0, 1)(generator);
}

std::string without_params(const std::string& content_type) {
  return std::string(trim(std::string_view(content_type).substr(0, content_type.find(';'))));
}

bool is_manifest_type(std::string_view type) {
  return type == kOciIndex || type == kOciManifest || type == kDockerList || type == kDockerManifest;
}

tl::unexpected<Failure> final_failure(Kind kind, std::string message, std::string hint = {}) {
  return tl::make_unexpected(Failure{{kind, std::move(message), std::move(hint)}});
}

}  // namespace

Registry::Registry(const World& world, const Endpoint& endpoint, const Settings& settings)
    : world_(world),
      host_(endpoint.host),
      repository_(api_repository(endpoint)),
      insecure_(endpoint.insecure),
      retries_(settings.retries),
      http_({std::chrono::seconds(30), std::chrono::seconds(settings.stall_seconds)}),
      login_(world, http_, host_, repository_, insecure_) {}

Result<std::shared_ptr<Registry>> Registry::open(const World& world, const Endpoint& endpoint,
                                                 const Settings& settings) {
  std::shared_ptr<Registry> registry(new Registry(world, endpoint, settings));
  if (auto url = registry->address(false, ""); !url)
    return fail(Kind::Config, "not a registry: " + printable(endpoint.host, 200));
  return registry;
}

Result<Url> Registry::address(bool plain, const std::string& path) const {
  return Url::parse(
      fmt::format("{}://{}/v2/{}/{}", plain ? "http" : "https", api_host(host_), repository_, path));
}

/// Sends and follows. Credentials go to the registry's own origin only, whatever a redirect says.
tl::expected<Registry::Answer, Failure> Registry::follow(const Url& start,
                                                         const std::vector<std::string>& headers,
                                                         const std::string& authorization, HttpFault* fault) {
  Url url = start;
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    const bool home = url.same_origin(start);
    HttpRequest request;
    request.url = url.text;
    request.headers = headers;
    if (home && !authorization.empty()) request.headers.push_back(authorization);
    request.allow_http = insecure_;
    // certs.d is named after the reference's spelling; elsewhere there is only the URL's.
    auto tls = find_certs(world_.config_root, home ? host_ : url.authority());
    if (!tls) return tl::make_unexpected(Failure{std::move(tls.error())});
    request.tls = std::move(*tls);
    request.tls.verify = !(insecure_ && home);
    HttpTransfer transfer = http_.start(std::move(request), world_.stop);
    auto response = transfer.open();
    if (!response) {
      if (hop == 0) *fault = transfer.fault();
      auto failure = transport_failure(transfer.fault(), std::move(response.error()).within(url.authority()));
      if (transfer.fault() == HttpFault::certificate)
        failure.error.hint = fmt::format("put the registry's CA into /etc/containers/certs.d/{}/ca.crt",
                                         home ? host_ : url.authority());
      return tl::make_unexpected(std::move(failure));
    }
    if (!is_redirect(response->status))
      return Answer{std::move(transfer), std::move(*response), std::move(url), !home};
    auto next = url.resolve(response->header("location"));
    if (!next) return tl::make_unexpected(Failure{std::move(next.error()).within(url.shown())});
    if (next->scheme != "https" && !insecure_)
      return final_failure(Kind::Offline, fmt::format("{} redirects to plain http ({}); refused",
                                                      url.authority(), next->shown()));
    url = std::move(*next);
  }
  return final_failure(Kind::Offline,
                       fmt::format("{}: more than {} redirects", start.authority(), kMaxRedirects));
}

tl::expected<Registry::Answer, Failure> Registry::get(const std::string& path,
                                                      const std::vector<std::string>& headers) {
  for (int round = 0;; ++round) {
    const Login::Header used = login_.header();
    const Url https = *address(false, path), http = *address(true, path);
    const Scheme scheme = scheme_;
    HttpFault fault = HttpFault::none;
    Url start = scheme == Scheme::http ? http : https;
    auto answer = follow(start, headers, used.value, &fault);
    const bool unreachable =
        fault == HttpFault::connect || fault == HttpFault::tls || fault == HttpFault::cut;
    if (!answer && unreachable && insecure_ && scheme == Scheme::unknown) {
      start = http;
      answer = follow(start, headers, used.value, &fault);
    }
    if (!answer) return answer;
    scheme_ = start.scheme == "http" ? Scheme::http : Scheme::https;
    // One login per request. A challenge from where a redirect led is nobody's business of ours.
    if (answer->response.status != 401 || answer->foreign || round > 0) return answer;
    (void)answer->transfer.read_all(kMaxErrorBody);  // so that the connection can be used again
    if (auto failure = login_.answer(start, answer->response, used))
      return tl::make_unexpected(std::move(*failure));
  }
}

Failure Registry::refusal(Answer& answer) {
  const int status = answer.response.status;
  std::string text;
  if (auto body = answer.transfer.read_all(kMaxErrorBody); body && *body)
    text = login_.redacted(server_error_text(**body));
  if ((status == 401 || status == 403) && !answer.foreign) return {login_.denied(status, text)};
  std::string message = fmt::format("{}: HTTP status {}{}{}", name(), status, text.empty() ? "" : ": ", text);
  if (answer.foreign) message += " from " + answer.url.authority() + ", where the registry sent us";
  if (status == 401 || status == 403) return {{Kind::Denied, std::move(message)}};
  return {{Kind::Offline, std::move(message)},
          is_retryable_status(status),
          parse_retry_after(answer.response.header("retry-after"), world_.clock.now())};
}

Result<void> Registry::pause(Failure failure, unsigned& attempt) {
  if (!failure.transient || attempt >= retries_) {
    if (failure.error.kind == Kind::Offline && failure.transient && attempt > 0)
      failure.error.message += fmt::format(" (after {} retries)", attempt);
    return fail(std::move(failure.error));
  }
  ++attempt;
  const auto delay = retry_delay(attempt, chance(), failure.retry_after);
  world_.progress.note(fmt::format("{}; retry {} of {} in {:.1f} s", failure.error.message, attempt, retries_,
                                   static_cast<double>(delay.count()) / 1000));
  world_.clock.sleep(delay, world_.stop);
  return world_.check_stop();
}

tl::expected<std::optional<Document>, Failure> Registry::manifest_once(const std::string& name) {
  auto answer = get("manifests/" + name, {kAccept});
  if (!answer) return tl::make_unexpected(std::move(answer.error()));
  if (answer->response.status == 404 && !answer->foreign) {
    (void)answer->transfer.read_all(kMaxErrorBody);
    return std::optional<Document>{};
  }
  if (answer->response.status != 200) return tl::make_unexpected(refusal(*answer));
  const std::string what = this->name() + ": manifest " + name;
  const auto length = answer->response.length();
  if (length && *length > kMaxManifestBytes)
    return final_failure(Kind::Untrusted, what + " is larger than 4 MiB");
  auto bytes = answer->transfer.read_all(kMaxManifestBytes);
  if (!bytes) {
    const HttpFault fault = answer->transfer.fault();
    return tl::make_unexpected(transport_failure(fault, std::move(bytes.error()).within(what)));
  }
  if (!*bytes) return final_failure(Kind::Untrusted, what + " is larger than 4 MiB");
  Document document;
  document.bytes = std::move(**bytes);
  count(document.bytes.size());
  document.media_type = without_params(answer->response.header("content-type"));
  if (!is_manifest_type(document.media_type))
    return final_failure(Kind::Untrusted, fmt::format("{} comes as \"{}\", which is not a manifest", what,
                                                      printable(document.media_type, 100)));
  document.digest = Digest::of_hex(sha256_hex(as_bytes(document.bytes)));
  return std::optional(std::move(document));
}

Result<std::optional<Document>> Registry::manifest(const std::string& name, const Digest* wanted) {
  for (unsigned attempt = 0;;) {
    auto got = manifest_once(name);
    if (!got) {
      TRY(pause(std::move(got.error()), attempt));
      continue;
    }
    if (*got && wanted != nullptr)
      TRY(check_digest((*got)->bytes, *wanted, this->name() + ": manifest " + name));
    return std::move(*got);
  }
}

Reader Registry::blob(const Descriptor& descriptor) {
  auto stream = std::make_shared<BlobStream>(shared_from_this(), descriptor);
  return [stream](std::span<std::byte> into) { return stream->read(into); };
}

}  // namespace rasupd
