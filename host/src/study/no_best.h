// What a study without a best configuration leaves its user with.
//
// Threading: pure functions.
#ifndef DSAT_HOST_STUDY_NO_BEST_H_
#define DSAT_HOST_STUDY_NO_BEST_H_

#include <filesystem>
#include <string>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

// "no configuration found" alone helps nobody: `reason`, how the trials ended, and why the last failed one did.
std::string why_no_best(const std::vector<Trial>& trials, const std::string& metric, const std::string& reason);

// What the last trial that went wrong printed last, below a line that says where all of it is; empty: none did.
std::vector<std::string> last_lines_of_failure(const std::vector<Trial>& trials, const std::filesystem::path& dir);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_NO_BEST_H_
