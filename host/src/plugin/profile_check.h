// Is a profile what docs/profile.md says? Checked where a profiler hands it over, so that the profiler is blamed for a
// wrong one, and not the searcher that reads it.
//
// Threading: a pure function.
#ifndef DSAT_HOST_PLUGIN_PROFILE_CHECK_H_
#define DSAT_HOST_PLUGIN_PROFILE_CHECK_H_

#include <string>

#include "dsat/error.h"

namespace dsat::host {

// "" or the first thing that is wrong: "world_size: 0 is no whole number from 1 to 2147483647".
std::string profile_problem(const Json& profile);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_PROFILE_CHECK_H_
