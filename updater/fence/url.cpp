#include "fence/url.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>

#include "base/handle.hpp"
#include "base/text.hpp"

namespace rasupd {
namespace {

using UrlHandle = std::unique_ptr<CURLU, Deleter<curl_url_cleanup>>;

std::string part(CURLU* handle, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(handle, which, &text, flags) != CURLUE_OK) return {};
  const std::unique_ptr<char, Deleter<curl_free>> owner(text);
  return text;
}

/// Presigned URLs are signed over their exact path: it is left as it was written.
constexpr unsigned kFlags = CURLU_PATH_AS_IS;

bool set(CURLU* handle, CURLUPart which, std::string_view text, unsigned flags) {
  return curl_url_set(handle, which, std::string(text).c_str(), flags) == CURLUE_OK;
}

bool plain(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 0x20 && c != 0x7f; });
}

Result<Url> take(CURLU* handle, std::string_view original) {
  const auto bad = [&](std::string_view why) {
    const auto cut = original.substr(0, original.find_first_of("?#"));
    return fail(Kind::Offline,
                "the server named an address that " + std::string(why) + ": " + printable(cut, 200));
  };
  if (!part(handle, CURLUPART_USER).empty() || !part(handle, CURLUPART_PASSWORD).empty())
    return fail(Kind::Offline, "the server named an address with a user or password in it");
  curl_url_set(handle, CURLUPART_FRAGMENT, nullptr, 0);
  Url url;
  url.scheme = part(handle, CURLUPART_SCHEME);
  if (url.scheme != "https" && url.scheme != "http") return bad("is neither https nor http");
  url.host = part(handle, CURLUPART_HOST);
  std::transform(url.host.begin(), url.host.end(), url.host.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  const std::string port = part(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  std::from_chars(port.data(), port.data() + port.size(), url.port);
  url.text = part(handle, CURLUPART_URL);
  if (url.host.empty() || url.port == 0 || !plain(url.text)) return bad("is not a URL");
  return url;
}

}  // namespace

Result<Url> Url::parse(std::string_view text) {
  const UrlHandle handle(curl_url());
  if (!plain(text) || !set(handle.get(), CURLUPART_URL, text, kFlags))
    return fail(Kind::Offline, "not a URL: " + printable(text.substr(0, text.find('?')), 200));
  return take(handle.get(), text);
}

Result<Url> Url::resolve(std::string_view reference) const {
  const UrlHandle handle(curl_url());
  if (!plain(reference) || !set(handle.get(), CURLUPART_URL, text, kFlags) ||
      !set(handle.get(), CURLUPART_URL, reference, kFlags))
    return fail(Kind::Offline, "the server named an address that is not a URL: " +
                                   printable(reference.substr(0, reference.find('?')), 200));
  return take(handle.get(), reference);
}

Result<Url> Url::with_query(std::string_view key, std::string_view value) const {
  const UrlHandle handle(curl_url());
  const std::string pair = std::string(key) + "=" + std::string(value);
  if (!set(handle.get(), CURLUPART_URL, text, kFlags) ||
      !set(handle.get(), CURLUPART_QUERY, pair, CURLU_APPENDQUERY | CURLU_URLENCODE))
    return fail(Kind::Offline, "cannot add to the query of " + shown());
  return take(handle.get(), text);
}

std::string Url::authority() const {
  const unsigned usual = scheme == "https" ? 443 : 80;
  return port == usual ? host : host + ":" + std::to_string(port);
}

std::string Url::shown() const {
  return printable(text.substr(0, text.find('?')), 200);
}

}  // namespace rasupd
