#pragma once
// The program as its command line: parse, run one verb, print one answer.

#include <stop_token>
#include <string>
#include <vector>

namespace rasupd {

/// Runs `rasupd` with `arguments` (without the program's name). Returns the exit code. `stop` ends the verb
/// early; `signal` tells which signal asked for it (0: none yet).
int run_program(const std::vector<std::string>& arguments, std::stop_token stop, const volatile int& signal);

}  // namespace rasupd
