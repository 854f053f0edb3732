// The C interface over strategies in processes of their own, so that the checks of a library try a searcher in Python
// too.
// Threading: one thread. Ownership: the factory lives as long as the program; strategies are the caller's, as in
// dsat/abi.h. Errors: as in dsat/abi.h; the message goes to set_error.
#ifndef DSAT_HOST_VALIDATE_APART_FACTORY_H_
#define DSAT_HOST_VALIDATE_APART_FACTORY_H_

#include "dsat/abi.h"
#include "dsat/host/plugins.h"

namespace dsat::host {

// A factory of this plugin alone. There is one at a time: a later call replaces the plugin.
const dsat_factory& apart_factory(const PluginInfo& plugin);

}  // namespace dsat::host

#endif  // DSAT_HOST_VALIDATE_APART_FACTORY_H_
