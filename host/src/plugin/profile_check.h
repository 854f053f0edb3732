// Checks a profile against docs/profile.md when a profiler sets it, so that the profiler is blamed for a wrong profile
// and not the searcher that reads it.
// Threading: a pure function.
#ifndef DSAT_HOST_PLUGIN_PROFILE_CHECK_H_
#define DSAT_HOST_PLUGIN_PROFILE_CHECK_H_

#include <string>

#include "dsat/error.h"

namespace dsat::host {

// Returns "" or the first problem: "world_size: 0 is no whole number from 1 to 2147483647".
std::string profile_problem(const Json& profile);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_PROFILE_CHECK_H_
