#pragma once
// Result<T> and Error: the one error idiom of the house. Kinds are the exit codes of the contract
// (docs/ARCHITECTURE.md, "Exit codes"): they say what the caller does next, not where it broke.
// No exception crosses a module; a Result that is dropped is a compile error.

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

namespace rasupd {

enum class Kind : int {
  Failed = 1,
  Usage = 2,
  Config = 3,
  Offline = 4,
  Untrusted = 5,
  NoSpace = 6,
  Held = 7,
  Busy = 8,
  Unsuitable = 9,
  Boot = 10,
  Denied = 11,
  NotFound = 12,
  Bug = 70,
  Cancelled = 130,
};

/// The kind's name as the JSON `error.kind` spells it, e.g. "Untrusted".
std::string_view kind_name(Kind kind);

struct Error {
  Kind kind = Kind::Failed;
  std::string message;   ///< what and where, one line, no trailing dot
  std::string hint{};    ///< what to do; may be empty
  bool changed = false;  ///< true when something was changed all the same (see contract, code 1)
  std::string reason{};  ///< a short machine word where the contract has one (`trial`, `downgrade`, …)

  /// The same error with "what: " before its message.
  Error within(std::string_view what) && {
    message = std::string(what) + ": " + message;
    return std::move(*this);
  }
};

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result(tl::expected<T, Error>&& other) : tl::expected<T, Error>(std::move(other)) {}

  /// The same result; an error gets "what: " before its message.
  Result within(std::string_view what) && {
    if (this->has_value()) return std::move(*this);
    return Result(tl::make_unexpected(std::move(this->error()).within(what)));
  }
};

/// Usage: `return fail(Kind::Config, "…", "hint");`
inline tl::unexpected<Error> fail(Kind kind, std::string message, std::string hint = {}) {
  return tl::make_unexpected(Error{kind, std::move(message), std::move(hint)});
}
inline tl::unexpected<Error> fail(Error error) {
  return tl::make_unexpected(std::move(error));
}

/// Kind for an errno: ENOSPC/EDQUOT are NoSpace, everything else Failed.
Kind kind_of_errno(int err);
/// `what: strerror(err)` as an error of kind_of_errno(err).
tl::unexpected<Error> fail_errno(int err, std::string_view what);

namespace detail {
template <class T>
T unwrap(Result<T>&& result) {
  return std::move(*result);
}
inline void unwrap(Result<void>&&) {}
}  // namespace detail

}  // namespace rasupd

/// Evaluates a Result; returns its error from the calling function or yields its value. Use it as a whole
/// statement or as an initializer: `auto x = TRY(f());` Never inside braces or among the arguments of a call that also
/// builds something: g++ does not destroy what was built when the statement expression returns. The counter gives
/// every use a name of its own, so that `TRY(f(TRY(g())))` does not shadow.
#define TRY(...) RASUPD_TRY_NAMED(__COUNTER__, __VA_ARGS__)
#define RASUPD_TRY_NAMED(counter, ...) RASUPD_TRY_BODY(counter, __VA_ARGS__)
#define RASUPD_TRY_BODY(counter, ...)                                                                 \
  __extension__({                                                                                     \
    auto try_result_##counter = (__VA_ARGS__);                                                        \
    if (!try_result_##counter) return ::tl::make_unexpected(std::move(try_result_##counter.error())); \
    ::rasupd::detail::unwrap(std::move(try_result_##counter));                                        \
  })
