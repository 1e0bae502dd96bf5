#include "upgrade/signatures.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace rasupd {
namespace {

constexpr std::string_view kSimpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json";
constexpr const char* kSignatureAnnotation = "dev.cosignproject.cosign/signature";

/// One layer of a signature manifest as a candidate; never an error but Offline, Denied and Cancelled.
Result<policy::Candidate> read_candidate(Source& source, const Descriptor& layer,
                                         policy::Candidate candidate) {
  const auto refuse = [&](std::string why) {
    candidate.problem = std::move(why);
    return std::move(candidate);
  };
  if (layer.media_type != kSimpleSigning) {
    return refuse(
        fmt::format("media type {} is not a simple-signing payload", printable(layer.media_type, 100)));
  }
  const auto annotation = layer.annotations.find(kSignatureAnnotation);
  if (annotation == layer.annotations.end()) return refuse("it has no signature annotation");
  // cosign and skopeo read base64 as Go does, which skips line ends; a trailing one occurs in the field.
  auto signature = base64_decode(trim(annotation->second));
  if (!signature) return refuse("its signature is not base64");
  auto payload = source.small_blob(layer, kMaxPayload);
  if (!payload && payload.error().kind != Kind::Untrusted) return fail(std::move(payload.error()));
  if (!payload) return refuse(payload.error().message);
  candidate.signature = std::move(*signature);
  candidate.payload = std::move(*payload);
  return candidate;
}

Result<void> gather_of(const World& world, Source& source, const std::string& subject,
                       GatheredSignatures& out) {
  const std::string tag = "sha256-" + subject.substr(subject.find(':') + 1) + ".sig";
  const auto document = TRY(source.tagged(tag));
  if (!document) return {};
  const Manifest manifest = TRY(parse_artifact_manifest(document->bytes, document->media_type).within(tag));
  for (std::size_t i = 0; i < manifest.layers.size(); ++i) {
    TRY(world.check_stop());
    if (out.candidates.size() >= kMaxSignatures) {
      return fail(Kind::Untrusted, fmt::format("{} carries more than {} signatures", subject, kMaxSignatures),
                  "remove old signatures from the registry");
    }
    policy::Candidate candidate;
    candidate.carrier = fmt::format("tag {} layer {}", tag, i);
    candidate.subject = subject;
    out.candidates.push_back(TRY(read_candidate(source, manifest.layers[i], std::move(candidate))));
  }
  return {};
}

}  // namespace

Result<GatheredSignatures> gather_signatures(const World& world, Source& source,
                                             const std::vector<std::string>& subjects) {
  GatheredSignatures out;
  for (const std::string& subject : subjects) {
    auto done = gather_of(world, source, subject, out);
    if (done) continue;
    if (done.error().kind == Kind::Cancelled) return fail(done.error());
    out.trouble = done.error();
  }
  return out;
}

}  // namespace rasupd
