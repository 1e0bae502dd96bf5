#pragma once
// The order of image versions: Debian's (deb-version(7)), because `org.opencontainers.image.version` of a
// Debian-based image is a Debian version, and its rules order 1.10 after 1.9 and 1.0~rc1 before 1.0.

#include <compare>
#include <string_view>

namespace rasupd::policy {

std::strong_ordering compare_versions(std::string_view a, std::string_view b);

}  // namespace rasupd::policy
