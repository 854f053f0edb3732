// What a library offers, as JSON: it comes from the process that has opened the library.
//
// Threading: pure functions. Errors: dsat::Error, DSAT_DATA_LOSS: it is no such thing.
#ifndef DSAT_HOST_PLUGIN_PLUGIN_INFO_JSON_H_
#define DSAT_HOST_PLUGIN_PLUGIN_INFO_JSON_H_

#include "dsat/host/plugins.h"

namespace dsat::host {

Json to_json(const PluginInfo& info);
PluginInfo plugin_info_from_json(const Json& json);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_PLUGIN_INFO_JSON_H_
