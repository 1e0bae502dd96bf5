// Is the name that was signed the name that was asked for? (containers-policy.json(5), "signedIdentity")

#include <fmt/format.h>

#include "base/image_name.hpp"
#include "base/text.hpp"
#include "policy/trust.hpp"

namespace rasupd::policy {
namespace {

using Type = SignedIdentity::Type;

bool say(std::string* why, std::string text) {
  if (why) *why = std::move(text);
  return false;
}

std::string full_name(const Identity& image) {
  return image.name + (image.tag ? ":" + *image.tag : "") + (image.digest ? "@" + *image.digest : "");
}

bool has_tag_or_digest(const ImageName& name) {
  return name.tag || name.digest;
}

bool match_exact(const ImageName& asked, const ImageName& signed_name, std::string* why) {
  if (has_tag_or_digest(asked) && has_tag_or_digest(signed_name) && asked == signed_name) return true;
  return say(why, fmt::format("it was signed as {}, but {} is wanted", signed_name.str(), asked.str()));
}

bool match_repository(const ImageName& asked, const ImageName& signed_name, std::string* why) {
  if (asked.name() == signed_name.name()) return true;
  return say(
      why, fmt::format("it was signed as {}, but repository {} is wanted", signed_name.str(), asked.name()));
}

bool match_repo_digest_or_exact(const ImageName& asked, const ImageName& signed_name, std::string* why) {
  if (!has_tag_or_digest(signed_name)) {
    return say(why,
               fmt::format("it was signed as {}, without a tag; signedIdentity matchRepository would take it",
                           signed_name.str()));
  }
  // The digest itself is bound by the signature; only by digest alone may the tag differ.
  if (!asked.tag && asked.digest) return match_repository(asked, signed_name, why);
  return match_exact(asked, signed_name, why);
}

/// `name` with `prefix` replaced at a '/' or as a whole; unchanged when the prefix is another's.
std::string remap(const ImageName& name, const SignedIdentity& rule) {
  const std::string plain = name.name();
  const bool matches = plain.starts_with(rule.prefix) &&
                       (plain.size() == rule.prefix.size() || plain[rule.prefix.size()] == '/');
  return matches ? rule.signed_prefix + name.str().substr(rule.prefix.size()) : name.str();
}

/// Rules that name the signed identity themselves, so that the image's own name does not matter.
bool matches_fixed(const SignedIdentity& rule, const ImageName& signed_name, std::string* why) {
  const bool exact = rule.type == Type::exactReference;
  const std::string& wanted = exact ? rule.docker_reference : rule.docker_repository;
  if ((exact ? signed_name.str() : signed_name.name()) == wanted) return true;
  return say(why, fmt::format("it was signed as {}, but the rule wants {}", signed_name.str(), wanted));
}

}  // namespace

bool identity_matches(const SignedIdentity& rule, const Identity& image, std::string_view docker_reference,
                      std::string* why) {
  const auto signed_name = ImageName::parse(docker_reference, Kind::Untrusted);
  if (!signed_name) return say(why, "the signed name is not usable: " + signed_name.error().message);
  if (rule.type == Type::exactReference || rule.type == Type::exactRepository) {
    return matches_fixed(rule, *signed_name, why);
  }
  if (image.transport != "docker") {
    return say(
        why, fmt::format("an image in {}: has no registry name to compare with the signed {}; the rule needs "
                         "signedIdentity exactReference or exactRepository",
                         image.transport, signed_name->str()));
  }
  const auto asked = ImageName::parse(full_name(image), Kind::Untrusted);
  if (!asked) return say(why, "the image's name is not usable: " + asked.error().message);
  if (rule.type == Type::matchExact) return match_exact(*asked, *signed_name, why);
  if (rule.type == Type::matchRepository) return match_repository(*asked, *signed_name, why);
  if (rule.type == Type::matchRepoDigestOrExact) return match_repo_digest_or_exact(*asked, *signed_name, why);
  const auto remapped = ImageName::parse(remap(*asked, rule), Kind::Untrusted);
  if (!remapped) return say(why, "the remapped name is not usable: " + remapped.error().message);
  return match_repo_digest_or_exact(*remapped, *signed_name, why);
}

}  // namespace rasupd::policy
