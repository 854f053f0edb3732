// Recognises a launcher that failed by itself: it left a traceback, and no message about a rank that died.
// Threading: pure function. Errors: none.
#ifndef DSAT_HOST_OUTPUTS_LAUNCHER_FAILURE_H_
#define DSAT_HOST_OUTPUTS_LAUNCHER_FAILURE_H_

#include <string>
#include <vector>

namespace dsat::host {

// Returns "torchrun failed by itself: AttributeError: ...", or "" if it did not. `lines`: standard error, printable.
std::string launcher_failure(const std::vector<std::string>& lines);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_LAUNCHER_FAILURE_H_
