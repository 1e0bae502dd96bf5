#pragma once
// Registry: one repository behind the distribution API (OCI distribution-spec v1.1). Knows how to get there:
// https or, where the operator allowed it, http; log in; follow redirects by hand; try again. Thread-safe.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stream.hpp"
#include "base/world.hpp"
#include "config/settings.hpp"
#include "fence/http.hpp"
#include "fence/url.hpp"
#include "source/login.hpp"
#include "source/registries.hpp"
#include "source/source.hpp"

namespace rasupd {

class Registry : public std::enable_shared_from_this<Registry> {
 public:
  /// Nothing is fetched. Error Config: an endpoint that makes no URL.
  static Result<std::shared_ptr<Registry>> open(const World& world, const Endpoint& endpoint,
                                                const Settings& settings);

  /// /manifests/`name`, a tag or digest; nullopt for a 404. With `wanted` the bytes are checked against it.
  Result<std::optional<Document>> manifest(const std::string& name, const Digest* wanted);
  /// The blob, unverified but never cut short: see verified().
  Reader blob(const Descriptor& descriptor);
  /// host/repo, for messages.
  std::string name() const { return host_ + "/" + repository_; }
  std::uint64_t bytes_fetched() const { return bytes_; }

  /// One answer with its body still to be read. `foreign`: it comes from another origin than the registry's.
  struct Answer {
    HttpTransfer transfer;
    HttpResponse response;
    Url url;
    bool foreign = false;
  };
  /// GET `path` beneath the repository once: with login and redirects, without retries.
  tl::expected<Answer, Failure> get(const std::string& path, const std::vector<std::string>& headers);
  /// What an answer that is not wanted means. 404 is left to callers that know better.
  Failure refusal(Answer& answer);
  /// Waits before the next attempt, or gives the error when there should be none. `attempt` counts up.
  Result<void> pause(Failure failure, unsigned& attempt);
  void count(std::size_t n) { bytes_ += n; }

 private:
  Registry(const World& world, const Endpoint& endpoint, const Settings& settings);
  Result<Url> address(bool plain, const std::string& path) const;
  tl::expected<Answer, Failure> get_from(const Url& start, const std::vector<std::string>& headers);
  tl::expected<Answer, Failure> follow(const Url& start, const std::vector<std::string>& headers,
                                       const std::string& authorization, HttpFault* fault);
  tl::expected<std::optional<Document>, Failure> manifest_once(const std::string& name);

  enum class Scheme { unknown, https, http };

  const World& world_;
  const std::string host_, repository_;
  const bool insecure_;
  const unsigned retries_;
  HttpClient http_;
  Login login_;
  std::atomic<Scheme> scheme_{Scheme::unknown};
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace rasupd
