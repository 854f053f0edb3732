// A profile (docs/profile.md) as lines for people: the model, its memory, and the ceiling of each stage.
//
// Threading: a pure function. Errors: none; a missing value is shown as unknown.
#ifndef DSAT_CLI_TERMINAL_PROFILE_LINES_H_
#define DSAT_CLI_TERMINAL_PROFILE_LINES_H_

#include <string>
#include <vector>

#include "dsat/error.h"

namespace dsat::cli {

std::vector<std::string> profile_lines(const Json& profile);

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_PROFILE_LINES_H_
