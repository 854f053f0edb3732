// A process environment as a list of "NAME=value", and the search for programs in its PATH.
//
// Threading: pure functions but for current_environment(), which reads that of this process. Errors: Status::invalid.
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

Environment current_environment();

std::optional<std::string> get_variable(const Environment& environment, std::string_view name);
void set_variable(Environment& environment, std::string_view name, std::string_view value);

// The program `name`: a path (relative to `cwd`) if it has a slash, else the first executable file of that name in
// PATH. Invalid: no such program, or it may not be executed; the message names it and the places searched.
Result<std::filesystem::path> find_program(const std::string& name, const std::filesystem::path& cwd,
                                           const Environment& environment);

}  // namespace dsat::host

#endif  // DSAT_HOST_ENVIRONMENT_H_
