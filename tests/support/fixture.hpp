#pragma once
// Files of tests/fixtures as text, and a matcher for errors. A fixture that is missing ends the test program:
// a test over nothing would pass.

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "base/result.hpp"

namespace rasupd::test {

inline std::string fixture(const std::string& path) {
  std::ifstream file(std::string(FIXTURES "/") + path, std::ios::binary);
  if (!file) {
    std::cerr << "no fixture " << path << "\n";
    std::abort();
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A Result that failed with `kind` and a message that has `text` in it.
MATCHER_P2(FailsWith, kind, text, "") {
  if (arg.has_value()) {
    *result_listener << "it succeeded";
    return false;
  }
  *result_listener << kind_name(arg.error().kind) << ": " << arg.error().message << " (" << arg.error().hint
                   << ")";
  return arg.error().kind == kind && arg.error().message.find(text) != std::string::npos;
}

MATCHER(Succeeds, "") {
  if (!arg.has_value()) *result_listener << kind_name(arg.error().kind) << ": " << arg.error().message;
  return arg.has_value();
}

}  // namespace rasupd::test
