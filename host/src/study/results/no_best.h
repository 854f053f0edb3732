// What a study without a best configuration leaves its user with.
//
// Threading: pure functions.
#ifndef DSAT_HOST_STUDY_RESULTS_NO_BEST_H_
#define DSAT_HOST_STUDY_RESULTS_NO_BEST_H_

#include <filesystem>
#include <string>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

// `reason`, how the trials ended, and why the last one failed.
std::string why_no_best(const std::vector<Trial>& trials, const std::string& metric, const std::string& reason);

// The last lines that the last unsuccessful trial printed, below a line that names its file; empty: there are none.
std::vector<std::string> last_lines_of_failure(const std::vector<Trial>& trials, const std::filesystem::path& dir);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_RESULTS_NO_BEST_H_
