// A launcher that failed by itself, before or beside the script: its own traceback, and no word of a rank that died.
//
// Threading: pure function. Errors: none.
#ifndef DSAT_HOST_OUTPUTS_LAUNCHER_FAILURE_H_
#define DSAT_HOST_OUTPUTS_LAUNCHER_FAILURE_H_

#include <string>
#include <vector>

namespace dsat::host {

// "torchrun failed by itself: AttributeError: ..."; empty: it did not. `lines`: of standard error, printable.
std::string launcher_failure(const std::vector<std::string>& lines);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_LAUNCHER_FAILURE_H_
