#include "source/blob_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/text.hpp"
#include "source/registry.hpp"

namespace rasupd {
namespace {

/// After this much progress a cut counts as the first again; a byte per connection must not go on for ever.
constexpr std::uint64_t kProgress = 1 << 20;

}  // namespace

std::optional<ContentRange> parse_content_range(std::string_view text) {
  text = trim(text);
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  ContentRange range;
  const auto number = [&](std::uint64_t& value, char after) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (after == 0) return text.empty();
    if (text.empty() || text.front() != after) return false;
    text.remove_prefix(1);
    return true;
  };
  if (!number(range.first, '-') || !number(range.last, '/') || !number(range.total, 0)) return std::nullopt;
  if (range.first > range.last || range.last >= range.total) return std::nullopt;
  return range;
}

BlobStream::BlobStream(std::shared_ptr<Registry> registry, Descriptor descriptor)
    : registry_(std::move(registry)),
      descriptor_(std::move(descriptor)),
      what_(fmt::format("{}: blob {}", registry_->name(), descriptor_.digest.str())) {}

Failure BlobStream::passing(std::string why) const {
  return {{Kind::Offline, fmt::format("{}: {}", what_, why), "run it again later; what was verified is kept"},
          true};
}

/// The answer to a Range must be exactly the rest; a wrong one means no more ranges from this server.
std::optional<Failure> BlobStream::accept_partial(const HttpResponse& response) {
  const auto range = parse_content_range(response.header("content-range"));
  if (position_ > 0 && range && range->first == position_ && range->total == descriptor_.size) {
    skip_ = 0;
    return std::nullopt;
  }
  ranges_ = false;
  return passing(fmt::format("the server answered a request from byte {} with the wrong range \"{}\"",
                             position_, printable(response.header("content-range"), 80)));
}

std::optional<Failure> BlobStream::open() {
  std::vector<std::string> headers;
  const bool partial = position_ > 0 && ranges_;
  if (partial) headers.push_back(fmt::format("Range: bytes={}-", position_));
  auto answer = registry_->get("blobs/" + descriptor_.digest.str(), headers);
  if (!answer) return std::move(answer.error());
  const int status = answer->response.status;
  if (status == 206) {
    if (auto failure = accept_partial(answer->response)) return failure;
  } else if (status == 200) {
    const auto length = answer->response.length();
    if (length && *length > descriptor_.size)
      return Failure{
          {Kind::Untrusted, fmt::format("{} is not what the manifest names: {} bytes instead of {}", what_,
                                        *length, descriptor_.size)}};
    skip_ = position_;
  } else if (partial && (status == 416 || status == 400)) {
    ranges_ = false;
    return passing(fmt::format("the server cannot continue at byte {}", position_));
  } else if (status == 404) {
    return Failure{{Kind::Offline, what_ + " is missing in the registry, though the manifest names it",
                    "push the image again, or wait until its push is complete"}};
  } else {
    return registry_->refusal(*answer);
  }
  transfer_ = std::move(answer->transfer);
  return std::nullopt;
}

Result<void> BlobStream::again(Failure failure) {
  transfer_.reset();
  if (position_ - mark_ >= kProgress) {
    attempt_ = 0;
    mark_ = position_;
  }
  return registry_->pause(std::move(failure), attempt_);
}

/// All bytes are there. One more is a lie; a transfer that fails to end is none, the digest decides.
Result<std::size_t> BlobStream::at_end() {
  if (!transfer_) return 0;
  std::byte extra[1];
  auto n = transfer_->read(extra);
  transfer_.reset();
  if (!n && n.error().kind == Kind::Cancelled) return fail(std::move(n.error()));
  if (n && *n > 0)
    return fail(Kind::Untrusted, fmt::format("{} is not what the manifest names: more than {} bytes", what_,
                                             descriptor_.size));
  return 0;
}

Result<std::size_t> BlobStream::read(std::span<std::byte> into) {
  for (;;) {
    if (!transfer_) {
      if (position_ == descriptor_.size && position_ > 0) return 0;
      if (auto failure = open()) {
        TRY(again(std::move(*failure)));
        continue;
      }
    }
    if (position_ == descriptor_.size && skip_ == 0) return at_end();
    auto n = transfer_->read(into);
    if (!n) {
      TRY(again(transport_failure(transfer_->fault(), std::move(n.error()).within(what_))));
      continue;
    }
    registry_->count(*n);
    if (*n == 0) {
      TRY(again(passing(fmt::format("it ended after {} of {} bytes", position_, descriptor_.size))));
      continue;
    }
    const std::size_t old = static_cast<std::size_t>(std::min<std::uint64_t>(skip_, *n));
    skip_ -= old;
    const std::size_t fresh = *n - old;
    if (fresh == 0) continue;
    if (old > 0) std::memmove(into.data(), into.data() + old, fresh);
    if (fresh > descriptor_.size - position_)
      return fail(Kind::Untrusted, fmt::format("{} is not what the manifest names: more than {} bytes", what_,
                                               descriptor_.size));
    position_ += fresh;
    return fresh;
  }
}

}  // namespace rasupd
