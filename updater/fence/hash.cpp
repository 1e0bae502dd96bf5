#include "fence/hash.hpp"

#include <openssl/evp.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/handle.hpp"
#include "base/text.hpp"

namespace rasupd {
namespace {

/// SHA-256 fails only without memory or without a provider. A digest that was not computed must never be
/// compared, so the program ends here.
void must(int ok) {
  if (ok == 1) return;
  std::fputs("rasupd: OpenSSL cannot compute SHA-256\n", stderr);
  std::abort();
}

/// Fetched once: EVP_sha256() looks the implementation up anew for every digest.
const EVP_MD* sha256() {
  static const EVP_MD* const md = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  must(md != nullptr);
  return md;
}

}  // namespace

struct Sha256::State {
  std::unique_ptr<EVP_MD_CTX, Deleter<EVP_MD_CTX_free>> context{EVP_MD_CTX_new()};

  State() { start(); }
  void start() { must(context && EVP_DigestInit_ex2(context.get(), sha256(), nullptr)); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  must(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()));
}

std::string Sha256::finish_hex() {
  std::array<unsigned char, 32> digest{};
  unsigned length = 0;
  must(EVP_DigestFinal_ex(state_->context.get(), digest.data(), &length));
  state_->start();
  return to_hex(std::as_bytes(std::span(digest)));
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish_hex();
}

}  // namespace rasupd
