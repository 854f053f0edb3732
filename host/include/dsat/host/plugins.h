// Finds and describes plugins. Loading a plugin runs only its [load] functions. A plugin that does not come with dsat
// is loaded in a process of its own.
#ifndef DSAT_HOST_PLUGINS_H_
#define DSAT_HOST_PLUGINS_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dsat/error.h"
#include "dsat/host/settings.h"
#include "dsat/host/status.h"

namespace dsat::host {

enum class PluginKind { searcher, profiler };
class PluginLibrary;

struct PluginInfo {
  std::filesystem::path file;
  PluginKind kind = PluginKind::searcher;
  std::string id, name, version, summary;
  unsigned abi_major = 0, abi_minor = 0;
  unsigned state_version = 0;
  Json options;  // as in dsat_descriptor.options_json, checked
  Json study;    // as in dsat_descriptor.study_json, checked; an empty object if the plugin has no wishes
  // The library stays open while a copy of this exists. nullptr: the plugin runs in a process of its own.
  std::shared_ptr<const PluginLibrary> library;
};

// Where bare names are looked up: $DSAT_PLUGIN_PATH, <folder of this program>/plugins, <libdir>/dsat/plugins.
std::vector<std::filesystem::path> plugin_search_path();

// A path (with a slash, or the name of a Python file) stays as it is; a bare name becomes lib<name>.so on the search
// path.
Result<std::filesystem::path> find_plugin(const std::string& name_or_path);

// A searcher in Python (docs/writing-a-searcher.md) always runs in a process of its own.
bool is_python_plugin(const std::filesystem::path& file);

// The text by which find_strategy finds this strategy again: its file, for Python with its class: "my.py:MySearch".
std::string address_of(const PluginInfo& plugin);

// Does this file come with dsat? Such a plugin runs in this process unless Isolation::process is set.
bool is_bundled_plugin(const std::filesystem::path& file);

// All strategies of a library. Status::invalid: not an ELF file, a missing or undefined symbol, or a wrong ABI.
Result<std::vector<PluginInfo>> describe_plugin(const std::filesystem::path& file,
                                                const PluginProcesses& processes = PluginProcesses());

// The strategy of this kind in the library. If there are several, the strategy with the file's name (lib<name>.so), or
// with the name after a Python file and a colon, else an error that names all.
Result<PluginInfo> find_strategy(const std::string& name_or_path, PluginKind kind,
                                 const PluginProcesses& processes = PluginProcesses());

// The strategies that come with dsat. A strategy that cannot be used is left out.
std::vector<PluginInfo> bundled_strategies(PluginKind kind, const PluginProcesses& processes = PluginProcesses());

// Turns the texts that the user typed into a value for every declared option. Checks types, ranges and choices, and
// fills in defaults.
Result<Json> parse_plugin_options(const PluginInfo& plugin, const Json& texts_by_name);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGINS_H_
