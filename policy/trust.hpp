#pragma once
// Trust: may this image be used here? The signature policy of containers-policy.json(5) as a value and its
// evaluation over facts that were gathered before. Pure: no disk, no network, no clock.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rasupd::policy {

/// The reference the person asked for, before any mirror rewriting ("image identity").
struct Identity {
  std::string transport;             ///< "docker", "oci", "oci-archive" (policy.json's words)
  std::string name;                  ///< docker: host[:port]/repo; oci: absolute path
  std::optional<std::string> tag;
  std::optional<std::string> digest; ///< "sha256:…" when the reference carried one
};

struct SignedIdentity {
  enum class Type { matchExact, matchRepoDigestOrExact, matchRepository, exactReference, exactRepository, remapIdentity };
  Type type = Type::matchRepoDigestOrExact;
  std::string docker_reference, docker_repository, prefix, signed_prefix;
};

struct Requirement {
  enum class Type { insecureAcceptAnything, reject, sigstoreSigned, unsupported };
  Type type = Type::reject;
  std::string type_name;               ///< as written, for messages
  std::vector<std::string> key_paths;  ///< sigstoreSigned: keyPath, keyPaths
  std::vector<std::string> key_data;   ///< sigstoreSigned: keyData(s), base64 undone: PEM
  SignedIdentity identity;
  std::string unsupported_why;  ///< e.g. "fulcio"
};

struct PolicyFile {
  std::vector<Requirement> default_requirements;
  std::map<std::string, std::map<std::string, std::vector<Requirement>>> transports;  ///< transport → scope
};

/// Strict as containers/image is: unknown or duplicate keys, wrong types, empty lists refuse the whole file.
/// Error Config naming `what` (the file).
Result<PolicyFile> parse_policy(std::string_view text, std::string_view what);

struct Rule {
  std::string scope;  ///< as it stands in the file: "docker:host/repo", "oci:/path", "default"
  std::vector<Requirement> requirements;
};
/// The most specific scope, completely; no inheritance.
Rule find_rule(const PolicyFile& policy, const Identity& image);

/// One stored signature: the payload's bytes exactly as stored and the decoded signature.
struct Candidate {
  std::string carrier;  ///< "tag sha256-….sig, layer 0"
  std::string subject;  ///< "sha256:…" of the manifest whose signature tag it was found under
  std::string payload, signature;
  std::string problem;  ///< when not empty: why it could not be read; it counts as a failed signature
};
/// Keys of one requirement as read by the caller: name (path, or "keyData 0") and a verifier, or a problem.
struct Key {
  std::string name;
  std::string problem;
  std::function<bool(std::string_view message, std::string_view signature)> verify;
};
struct Facts {
  std::vector<std::string> subjects;  ///< digests a signature may be for: the instance, then the index
  std::vector<Candidate> candidates;
  std::map<std::string, std::vector<Key>> keys;  ///< requirement index as text → its keys, in order
  bool scope_may_be_unverified = false;          ///< `[trust] unverified_scopes` names this rule's scope
};

struct Accepted {
  std::string rule;     ///< scope
  std::string key;      ///< name of the key; empty when nothing was verified
  std::string carrier;  ///< empty when nothing was verified
  std::string subject;
  bool verified = false;
};
/// All requirements must hold, each sigstoreSigned by one good signature; a rule under which nothing was
/// verified refuses unless the scope may be unverified. Error Untrusted naming rule and, per candidate, the
/// check that failed; Config for a requirement type we cannot check or a key that cannot be used.
Result<Accepted> evaluate(const Rule& rule, const Identity& image, const Facts& facts);

/// The simple-signing payload (containers-signature(5)) of an already verified signature, strictly parsed.
struct Payload {
  std::string manifest_digest, docker_reference;
};
Result<Payload> parse_payload(std::string_view bytes);
/// Does a signed docker-reference satisfy `rule` for this image? On false `why` says what was compared.
bool identity_matches(const SignedIdentity& rule, const Identity& image, std::string_view docker_reference,
                      std::string* why);

}  // namespace rasupd::policy
