#pragma once
// SHA-256 by OpenSSL's EVP (SHA-NI where the processor has it).

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace rasupd {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  /// Lower-case hex of everything so far; the object starts anew.
  std::string finish_hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace rasupd
