#include "fence/http.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/files.hpp"
#include "base/handle.hpp"
#include "base/text.hpp"

namespace rasupd {
namespace {

using Easy = std::unique_ptr<CURL, Deleter<curl_easy_cleanup>>;
using Multi = std::unique_ptr<CURLM, Deleter<curl_multi_cleanup>>;
using List = std::unique_ptr<curl_slist, Deleter<curl_slist_free_all>>;

/// The transfer is paused from here on; with one more of curl's buffers this stays below 1 MiB.
constexpr std::size_t kPauseAt = 512 << 10;
/// Slower than this for the whole stall time is a stall: a server that drips bytes must not hold the lock for
/// days.
constexpr long kLeastBytesPerSecond = 1024;
constexpr long kCurlBuffer = 128 << 10;
/// Registries send a few KiB; a server that sends more headers than this is not one.
constexpr std::size_t kMaxHeaderBytes = 64 << 10;
/// How long a stop may go unnoticed while nothing arrives.
constexpr int kPollMs = 100;
/// A CA bundle is about 200 KiB; this bounds a wrong path.
constexpr std::size_t kMaxBundle = 8 << 20;

HttpFault fault_of(CURLcode code, bool connected) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return HttpFault::resolve;
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY:
      return HttpFault::connect;
    case CURLE_OPERATION_TIMEDOUT:
      return connected ? HttpFault::stall : HttpFault::connect;
    case CURLE_SSL_CONNECT_ERROR:
      return HttpFault::tls;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
      return HttpFault::certificate;
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return HttpFault::setup;
    default:
      return HttpFault::cut;
  }
}

/// The system's authorities as curl was built to find them: setting a blob replaces the bundle file.
const std::string& system_authorities(CURL* easy) {
  static std::once_flag once;
  static std::string bundle;
  std::call_once(once, [&] {
    char* path = nullptr;
    if (curl_easy_getinfo(easy, CURLINFO_CAINFO, &path) != CURLE_OK || path == nullptr) return;
    if (auto content = read_file(path, kMaxBundle); content && *content) bundle = **content;
  });
  return bundle;
}

}  // namespace

struct HttpClient::Pool {
  std::mutex mutex;
  std::vector<Multi> idle;

  Multi take() {
    const std::lock_guard lock(mutex);
    if (idle.empty()) return Multi(curl_multi_init());
    Multi multi = std::move(idle.back());
    idle.pop_back();
    return multi;
  }
  void give(Multi multi) {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(multi));
  }
};

struct HttpTransfer::Body {
  std::shared_ptr<HttpClient::Pool> pool;
  HttpLimits limits;
  HttpRequest request;
  std::stop_token stop;
  Multi multi;
  Easy easy;
  List headers;
  char error_text[CURL_ERROR_SIZE] = {};

  HttpResponse response;
  std::size_t header_bytes = 0;
  bool headers_done = false, done = false, paused = false, flooded = false;
  CURLcode code = CURLE_OK;
  std::string buffer;
  std::size_t taken = 0;  ///< bytes of `buffer` already handed out
  HttpFault fault = HttpFault::none;

  ~Body();
  bool set_up();
  void set_up_tls();
  template <class Ready>
  Result<void> drive(Ready ready);
  HttpFault fault_of_code();
  tl::unexpected<Error> failure(HttpFault what);
  bool empty() const { return taken == buffer.size(); }

  static std::size_t on_header(char* data, std::size_t, std::size_t size, void* self) noexcept;
  static std::size_t on_body(char* data, std::size_t, std::size_t size, void* self) noexcept;
};

HttpTransfer::Body::~Body() {
  if (multi && easy) {
#if LIBCURL_VERSION_NUM >= 0x075700  // 7.87: do not join a resolver thread that may hang for a minute
    if (!done) curl_easy_setopt(easy.get(), CURLOPT_QUICK_EXIT, 1L);
#endif
    curl_multi_remove_handle(multi.get(), easy.get());
  }
  easy.reset();
  if (multi) pool->give(std::move(multi));
}

std::size_t HttpTransfer::Body::on_header(char* data, std::size_t, std::size_t size, void* self) noexcept {
  auto& body = *static_cast<Body*>(self);
  body.header_bytes += size;
  if (body.header_bytes > kMaxHeaderBytes) {
    body.flooded = true;
    return 0;
  }
  const std::string_view line(data, size);
  if (line.starts_with("HTTP/")) {  // a 1xx answer may come before the real one
    body.response = {};
    return size;
  }
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) {
    if (!trim(line).empty()) return size;
    long status = 0;
    curl_easy_getinfo(body.easy.get(), CURLINFO_RESPONSE_CODE, &status);
    body.response.status = static_cast<int>(status);
    body.headers_done = status >= 200;
    return size;
  }
  if (body.headers_done) return size;  // a trailer of a chunked body
  std::string name(trim(line.substr(0, colon)));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  body.response.headers.emplace(std::move(name), std::string(trim(line.substr(colon + 1))));
  return size;
}

std::size_t HttpTransfer::Body::on_body(char* data, std::size_t, std::size_t size, void* self) noexcept {
  auto& body = *static_cast<Body*>(self);
  if (body.buffer.size() - body.taken >= kPauseAt) {
    body.paused = true;
    return CURL_WRITEFUNC_PAUSE;
  }
  body.buffer.append(data, size);
  return size;
}

void HttpTransfer::Body::set_up_tls() {
  CURL* h = easy.get();
  const HttpTls& tls = request.tls;
  curl_easy_setopt(h, CURLOPT_SSL_VERIFYPEER, tls.verify ? 1L : 0L);
  curl_easy_setopt(h, CURLOPT_SSL_VERIFYHOST, tls.verify ? 2L : 0L);
  if (!tls.ca_pem.empty()) {
    std::string all = tls.ca_pem + "\n" + system_authorities(h);
    curl_blob blob{all.data(), all.size(), CURL_BLOB_COPY};
    curl_easy_setopt(h, CURLOPT_CAINFO_BLOB, &blob);
  }
  if (!tls.client_cert.empty()) {
    curl_easy_setopt(h, CURLOPT_SSLCERT, tls.client_cert.c_str());
    curl_easy_setopt(h, CURLOPT_SSLKEY, tls.client_key.c_str());
  }
}

bool HttpTransfer::Body::set_up() {
  easy.reset(curl_easy_init());
  multi = pool->take();
  if (!easy || !multi) return false;
  CURL* h = easy.get();
  curl_easy_setopt(h, CURLOPT_ERRORBUFFER, error_text);
  curl_easy_setopt(h, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, request.allow_http ? "http,https" : "https");
  curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(h, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  // HTTP/2 would let a server fill a 32 MiB window while we are paused.
  curl_easy_setopt(h, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(h, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(h, CURLOPT_NOPROGRESS, 1L);
  curl_easy_setopt(h, CURLOPT_BUFFERSIZE, kCurlBuffer);
  curl_easy_setopt(h, CURLOPT_USERAGENT, "rasupd/" RASUPD_VERSION);
  curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT, static_cast<long>(limits.connect.count()));
  curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, kLeastBytesPerSecond);
  curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, static_cast<long>(limits.stall.count()));
  curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(h, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(h, CURLOPT_WRITEDATA, this);
  if (request.method == "HEAD") curl_easy_setopt(h, CURLOPT_NOBODY, 1L);
  if (request.method == "POST") {
    curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(h, CURLOPT_POSTFIELDS, request.body.c_str());
  }
  for (const auto& header : request.headers) {
    curl_slist* grown = curl_slist_append(headers.get(), header.c_str());
    if (grown == nullptr) return false;
    (void)headers.release();
    headers.reset(grown);
  }
  curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers.get());
  set_up_tls();
  return curl_multi_add_handle(multi.get(), h) == CURLM_OK;
}

tl::unexpected<Error> HttpTransfer::Body::failure(HttpFault what) {
  fault = what;
  done = true;
  if (what == HttpFault::cancelled) return fail(Kind::Cancelled, "interrupted; nothing was changed");
  if (what == HttpFault::flood) return fail(Kind::Offline, "the server sent more than 64 KiB of headers");
  std::string text = error_text[0] != 0 ? error_text : curl_easy_strerror(code);
  if (what == HttpFault::stall)
    text = "the transfer stalled: nothing arrived for " + std::to_string(limits.stall.count()) + " s";
  const bool local_file = what == HttpFault::setup && code != CURLE_UNSUPPORTED_PROTOCOL;
  return fail(local_file ? Kind::Config : Kind::Offline, printable(trim(text)));
}

/// Lets curl work until `ready()` or the transfer is over; what went wrong then stands in `code`.
template <class Ready>
Result<void> HttpTransfer::Body::drive(Ready ready) {
  while (!done && !ready()) {
    if (stop.stop_requested()) return failure(HttpFault::cancelled);
    int running = 0, left = 0;
    CURLMcode status = curl_multi_perform(multi.get(), &running);
    if (status != CURLM_OK) {
      code = CURLE_RECV_ERROR;
      done = true;
      break;
    }
    while (const CURLMsg* message = curl_multi_info_read(multi.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      code = message->data.result;
      done = true;
    }
    if (!done && !ready()) curl_multi_poll(multi.get(), nullptr, 0, kPollMs, nullptr);
  }
  return {};
}

HttpFault HttpTransfer::Body::fault_of_code() {
  if (flooded) return HttpFault::flood;
  curl_off_t started = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_PRETRANSFER_TIME_T, &started);
  return fault_of(code, started > 0);
}

HttpTransfer::HttpTransfer(std::unique_ptr<Body> body) : body_(std::move(body)) {}
HttpTransfer::~HttpTransfer() = default;
HttpTransfer::HttpTransfer(HttpTransfer&&) noexcept = default;
HttpTransfer& HttpTransfer::operator=(HttpTransfer&&) noexcept = default;

Result<HttpResponse> HttpTransfer::open() {
  Body& body = *body_;
  if (!body.easy && !body.set_up()) {
    body.code = CURLE_OUT_OF_MEMORY;
    return body.failure(HttpFault::setup);
  }
  TRY(body.drive([&] { return body.headers_done; }));
  if (!body.headers_done) return body.failure(body.fault_of_code());
  return body.response;
}

Result<std::size_t> HttpTransfer::read(std::span<std::byte> into) {
  Body& body = *body_;
  if (body.fault != HttpFault::none) return fail(Kind::Bug, "a failed transfer was read again");
  if (body.stop.stop_requested()) return body.failure(HttpFault::cancelled);
  if (body.empty()) {
    body.buffer.clear();
    body.taken = 0;
    if (std::exchange(body.paused, false)) curl_easy_pause(body.easy.get(), CURLPAUSE_CONT);
    TRY(body.drive([&] { return !body.empty(); }));
  }
  if (body.empty()) {
    if (body.code != CURLE_OK) return body.failure(body.fault_of_code());
    return 0;
  }
  const std::size_t n = std::min(into.size(), body.buffer.size() - body.taken);
  std::memcpy(into.data(), body.buffer.data() + body.taken, n);
  body.taken += n;
  return n;
}

Result<std::optional<std::string>> HttpTransfer::read_all(std::size_t max_bytes) {
  std::string all;
  std::byte chunk[16384];
  for (;;) {
    const std::size_t n = TRY(read(chunk));
    if (n == 0) return std::optional(std::move(all));
    if (all.size() + n > max_bytes) return std::optional<std::string>{};
    all.append(reinterpret_cast<const char*>(chunk), n);
  }
}

HttpFault HttpTransfer::fault() const {
  return body_->fault;
}

std::string HttpResponse::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

std::optional<std::uint64_t> HttpResponse::length() const {
  const std::string text = header("content-length");
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

HttpClient::HttpClient(HttpLimits limits) : limits_(limits), pool_(std::make_shared<Pool>()) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}
HttpClient::~HttpClient() = default;

HttpTransfer HttpClient::start(HttpRequest request, std::stop_token stop) {
  auto body = std::make_unique<HttpTransfer::Body>();
  body->pool = pool_;
  body->limits = limits_;
  body->request = std::move(request);
  body->stop = std::move(stop);
  return HttpTransfer(std::move(body));
}

}  // namespace rasupd
