// The losses and gradient norms that a trial reported, step by step (docs/guard.md): in its result file, in the file
// that the probe's hook leaves, or in lines that it printed.
//
// Threading: pure except for reading files. Errors: none; what cannot be used is left out with a warning.
#ifndef DSAT_HOST_OUTPUTS_CURVE_H_
#define DSAT_HOST_OUTPUTS_CURVE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "dsat/error.h"
#include "dsat/host/record.h"

namespace re2 {
class RE2;
}

namespace dsat::host {

inline constexpr const char* kStepsFile = "steps.json";  // in the probe's folder

// More steps say nothing more, and the journal keeps them all.
inline constexpr size_t kMostCurveSteps = 4096;

// The inverse of to_json(const Curve&); members that are missing or are no lists give no values.
Curve curve_from_json(const Json& json);

// Reads `losses` and `grad_norms` of the file, if there is one.
Curve read_curve_file(const std::filesystem::path& file, std::vector<std::string>& warnings);

// The numbers in the pattern's group, one for each line that fits. A group that is no number gives nullopt and, once, a
// warning that names `option`.
std::vector<std::optional<double>> numbers_in(const std::vector<std::string>& lines, const re2::RE2& pattern,
                                              const char* option, std::vector<std::string>& warnings);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_CURVE_H_
