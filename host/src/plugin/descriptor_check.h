// Checks a plugin's description of itself against the ABI.
// Threading: a pure function.
#ifndef DSAT_HOST_PLUGIN_DESCRIPTOR_CHECK_H_
#define DSAT_HOST_PLUGIN_DESCRIPTOR_CHECK_H_

#include <string>

#include "dsat/host/plugins.h"

namespace dsat::host {

// Returns "" or the first problem.
std::string problem_of(const PluginInfo& info);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_DESCRIPTOR_CHECK_H_
