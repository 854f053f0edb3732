// Converts a plugin's description to and from JSON, in which another process sends it.
// Threading: pure functions. Errors: dsat::Error, DSAT_DATA_LOSS: the JSON is no description.
#ifndef DSAT_HOST_PLUGIN_PLUGIN_INFO_JSON_H_
#define DSAT_HOST_PLUGIN_PLUGIN_INFO_JSON_H_

#include "dsat/host/plugins.h"

namespace dsat::host {

Json to_json(const PluginInfo& info);
PluginInfo plugin_info_from_json(const Json& json);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_PLUGIN_INFO_JSON_H_
