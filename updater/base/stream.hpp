#pragma once
// Reader: a pull stream of bytes. A call fills at most the span and returns how much; 0 is the end. After
// an error or the end it must not be called again. Copies share one position.

#include <cstddef>
#include <functional>
#include <span>

#include "base/result.hpp"

namespace rasupd {

using Reader = std::function<Result<std::size_t>(std::span<std::byte>)>;

}  // namespace rasupd
