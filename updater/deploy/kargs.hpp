#pragma once
// Kernel arguments that images bring in /usr/lib/bootc/kargs.d/*.toml and /usr/lib/rasupd/kargs.d/*.toml, applied as a
// three-way difference: what the old image brought and the new one does not is removed, what is new is added,
// what the machine has of its own stays (R117). Pure but for read_kargs_d.

#include <string>
#include <vector>

#include "base/result.hpp"

namespace rasupd {

/// `kargs = ["a", "b"]`, optional `match-architectures`; unknown keys are an error (Unsuitable, with the file).
Result<std::vector<std::string>> parse_kargs_toml(std::string_view text, std::string_view what, std::string_view architecture);
/// All files of both directories beneath `root` (an absolute path of a deployment or tree), by name.
Result<std::vector<std::string>> read_kargs_d(const std::string& root, std::string_view architecture);
std::vector<std::string> merge_kargs(const std::vector<std::string>& current, const std::vector<std::string>& old_image,
                                     const std::vector<std::string>& new_image);

}  // namespace rasupd
