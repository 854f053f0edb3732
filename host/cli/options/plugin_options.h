// Options of plugins as options of the command line.
//
// Threading: pure functions. Each declared option NAME is taken as --searcher.NAME or --profiler.NAME, and as plain
// --NAME as long as neither the host nor the other plugin has that name.
#ifndef DSAT_CLI_OPTIONS_PLUGIN_OPTIONS_H_
#define DSAT_CLI_OPTIONS_PLUGIN_OPTIONS_H_

#include "dsat/error.h"
#include "dsat/host/plugins.h"
#include "options/kit.h"

namespace dsat::cli {

// Adds the options of both plugins to the host's own.
void add_plugin_options(OptionSet& set, const host::PluginInfo& searcher, const host::PluginInfo& profiler);

// The given options as {name: text as typed}, for StrategyChoice.options.
Json given_plugin_options(const OptionSet& set, const Values& values, const host::PluginInfo& plugin);

}  // namespace dsat::cli

#endif  // DSAT_CLI_OPTIONS_PLUGIN_OPTIONS_H_
