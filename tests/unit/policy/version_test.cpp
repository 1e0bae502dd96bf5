#include "policy/version.hpp"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace rasupd::policy {
namespace {

const std::vector<std::string> kVersions = {
    "1.0",     "1.0~rc1", "1.0~~",  "1.10",   "1.9",  "1:0.1",      "0",        "0.0",     "1.0-1",      "1.0-2",
    "1.0-1.1", "1.0a",    "1.0+b1", "1.0.1",  "a",    "2026.11.29", "2026.2.1", "v1.2.3",  "1.0-1~bpo1", "00001.0",
    "1.0-0",   "1.a",     "1.a1",   "1.a10",  "1.a9", "1.0-1-1",    "10",       "9",       "1..0",       "1.0+",
};

std::strong_ordering dpkg(const std::string& a, const std::string& b) {
  const auto holds = [&](const char* relation) {
    return std::system(("dpkg --compare-versions '" + a + "' " + relation + " '" + b + "' 2>/dev/null").c_str()) == 0;
  };
  if (holds("lt")) return std::strong_ordering::less;
  return holds("gt") ? std::strong_ordering::greater : std::strong_ordering::equal;
}

TEST(Version, AgreesWithDpkgOnEveryPair) {
  for (std::size_t i = 0; i < kVersions.size(); ++i) {
    for (std::size_t j = i; j < kVersions.size(); ++j) {
      const auto& a = kVersions[i];
      const auto& b = kVersions[j];
      const auto expected = dpkg(a, b);
      EXPECT_EQ(compare_versions(a, b), expected) << a << " against " << b;
      EXPECT_EQ(compare_versions(b, a), (expected < 0 ? std::strong_ordering::greater : expected > 0 ? std::strong_ordering::less : expected)) << b << " against " << a;
    }
  }
}

}  // namespace
}  // namespace rasupd::policy
