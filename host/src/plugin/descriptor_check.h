// Is what a plugin says of itself as the ABI wants it?
//
// Threading: a pure function.
#ifndef DSAT_HOST_PLUGIN_DESCRIPTOR_CHECK_H_
#define DSAT_HOST_PLUGIN_DESCRIPTOR_CHECK_H_

#include <string>

#include "dsat/host/plugins.h"

namespace dsat::host {

// "" or the first thing that is wrong with its options or its wishes.
std::string problem_of(const PluginInfo& info);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_DESCRIPTOR_CHECK_H_
