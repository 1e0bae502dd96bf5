#include "fence/pkey.hpp"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <array>

#include "base/handle.hpp"
#include "base/text.hpp"
#include "fence/hash.hpp"

namespace rasupd {
namespace {

using Pkey = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using MdContext = std::unique_ptr<EVP_MD_CTX, Deleter<EVP_MD_CTX_free>>;
using EcdsaSig = std::unique_ptr<ECDSA_SIG, Deleter<ECDSA_SIG_free>>;
using Bio = std::unique_ptr<BIO, Deleter<BIO_free>>;

/// OpenSSL frees what i2d allocates through a macro, which cannot be a template argument.
struct OpensslFree {
  void operator()(unsigned char* pointer) const noexcept { OPENSSL_free(pointer); }
};
using Der = std::unique_ptr<unsigned char, OpensslFree>;

constexpr std::string_view kBegin = "-----BEGIN PUBLIC KEY-----";
constexpr std::string_view kEnd = "-----END PUBLIC KEY-----";
/// NIST SP 800-131A: shorter RSA keys are not acceptable. The upper bound keeps a verification under a
/// second.
constexpr int kMinRsaBits = 2048, kMaxRsaBits = 16384;

/// Empties this thread's error queue on every way out, so that no later call reports our failure as its own.
struct QuietErrors {
  ~QuietErrors() { ERR_clear_error(); }
};

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string_view text_of(const Der& der, int length) {
  return {reinterpret_cast<const char*>(der.get()), static_cast<std::size_t>(length)};
}

/// A PEM block may claim to be encrypted; without a callback OpenSSL would ask on the terminal.
int no_password(char*, int, int, void*) noexcept {
  return -1;
}

/// Exactly one PEM block and nothing around it but white space: OpenSSL itself reads the first of many.
bool is_one_block(std::string_view pem) {
  const auto block = trim(pem);
  return block.starts_with(kBegin) && block.ends_with(kEnd) &&
         block.find("-----BEGIN", kBegin.size()) == std::string_view::npos;
}

Result<void> check_ec(const EVP_PKEY* key) {
  std::array<char, 64> group{};
  int is_explicit = 0;
  EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, group.data(), group.size(), nullptr);
  // Parameters spelled out can be a curve that only resembles the named one (CVE-2020-0601).
  EVP_PKEY_get_int_param(key, OSSL_PKEY_PARAM_EC_DECODED_FROM_EXPLICIT_PARAMS, &is_explicit);
  const std::string_view name = group.data();
  if (is_explicit == 0 && (name == SN_X9_62_prime256v1 || name == SN_secp384r1)) return {};
  return fail(Kind::Config,
              fmt::format("an EC key on curve \"{}\"; only P-256 and P-384 are supported", name));
}

Result<void> check_kind(const EVP_PKEY* key) {
  switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_EC:
      return check_ec(key);
    case EVP_PKEY_ED25519:
      return {};
    case EVP_PKEY_RSA: {
      const int bits = EVP_PKEY_get_bits(key);
      if (bits >= kMinRsaBits && bits <= kMaxRsaBits) return {};
      return fail(Kind::Config, fmt::format("an RSA key of {} bits; {} to {} are supported", bits,
                                            kMinRsaBits, kMaxRsaBits));
    }
    default:
      return fail(Kind::Config, "a key of a kind that is not supported", "use ECDSA P-256");
  }
}

/// DER has one spelling per value; BER, padded integers and trailing bytes would give one signature many.
bool is_canonical_ecdsa(std::string_view signature) {
  const unsigned char* at = bytes_of(signature);
  const EcdsaSig parsed(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(signature.size())));
  if (!parsed) return false;
  unsigned char* raw = nullptr;
  const int length = i2d_ECDSA_SIG(parsed.get(), &raw);
  const Der again(raw);
  return length > 0 && text_of(again, length) == signature;
}

}  // namespace

struct PublicKey::State {
  Pkey key;
};

Result<PublicKey> PublicKey::parse_pem(std::string_view pem) {
  const QuietErrors quiet;
  constexpr std::size_t kMaxPem = 16384;  // an RSA key of kMaxRsaBits has 2.8 kB
  const bool fits = pem.size() <= kMaxPem && is_one_block(pem);
  if (!fits) {
    return fail(Kind::Config, "not exactly one PEM block \"BEGIN PUBLIC KEY\"",
                "export it with: openssl pkey -in KEY -pubout, or use cosign.pub");
  }
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  auto state = std::make_shared<State>();
  state->key.reset(PEM_read_bio_PUBKEY(bio.get(), nullptr, no_password, nullptr));
  if (!state->key) return fail(Kind::Config, "the PEM block does not hold a public key");
  TRY(check_kind(state->key.get()));
  unsigned char* raw = nullptr;
  const int length = i2d_PUBKEY(state->key.get(), &raw);
  const Der der(raw);
  if (length <= 0) return fail(Kind::Config, "the public key cannot be encoded");
  PublicKey key;
  key.fingerprint_ = sha256_hex(as_bytes(text_of(der, length)));
  key.state_ = std::move(state);
  return key;
}

bool PublicKey::verify(std::string_view message, std::string_view signature) const {
  const QuietErrors quiet;
  if (!state_) return false;
  EVP_PKEY* key = state_->key.get();
  constexpr std::size_t kMaxSignature = kMaxRsaBits / 8;
  if (signature.empty() || signature.size() > kMaxSignature) return false;
  const int kind = EVP_PKEY_get_base_id(key);
  if (kind == EVP_PKEY_EC && !is_canonical_ecdsa(signature)) return false;
  const EVP_MD* digest = kind == EVP_PKEY_ED25519 ? nullptr : EVP_sha256();  // Ed25519 hashes by itself
  const MdContext context(EVP_MD_CTX_new());
  if (!context || EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, key) != 1) return false;
  return EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(message),
                          message.size()) == 1;
}

}  // namespace rasupd
