// A process environment as a list of "NAME=value", and programs found by it.
//
// Threading: pure functions but for current_environment(), which reads this process's own. Errors: Status::invalid.
#ifndef DSAT_HOST_ENVIRONMENT_H_
#define DSAT_HOST_ENVIRONMENT_H_

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsat/host/status.h"

namespace dsat::host {

using Environment = std::vector<std::string>;

// This process's own.
Environment current_environment();

std::optional<std::string> get_variable(const Environment& environment, std::string_view name);
void set_variable(Environment& environment, std::string_view name, std::string_view value);

// The program that `name` means: with a slash a path (relative to `cwd`), else the first executable file of that name
// in PATH. Invalid: no such program, or one that may not be executed; the message names it and where it was sought.
Result<std::filesystem::path> find_program(const std::string& name, const std::filesystem::path& cwd,
                                           const Environment& environment);

}  // namespace dsat::host

#endif  // DSAT_HOST_ENVIRONMENT_H_
