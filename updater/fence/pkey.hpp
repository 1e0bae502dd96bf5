#pragma once
// Public keys and signatures by OpenSSL's EVP: ECDSA P-256/P-384 and RSA (PKCS#1 v1.5) over SHA-256, pure Ed25519.

#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace rasupd {

class PublicKey {
 public:
  /// PEM SubjectPublicKeyInfo ("BEGIN PUBLIC KEY"), exactly one. Error Config when it is not, or RSA < 2048 bits.
  static Result<PublicKey> parse_pem(std::string_view pem);

  /// True when `signature` (DER for ECDSA, strictly canonical) is this key's over `message`. Any malformed
  /// signature is false, never an error. OpenSSL's error queue is left empty.
  bool verify(std::string_view message, std::string_view signature) const;
  /// Lower-case hex SHA-256 of the DER SubjectPublicKeyInfo.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  struct State;
  std::shared_ptr<const State> state_;
  std::string fingerprint_;
};

}  // namespace rasupd
