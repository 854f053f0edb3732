// Finding and describing plugins. Loading one runs nothing of it but its [load] functions; one that does not come with
// dsat is loaded in a process of its own.
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
  Json study;    // as in dsat_descriptor.study_json, checked: an object, empty where the plugin wants nothing
  // Stays open while a copy of this lives. nullptr: the plugin runs in a process of its own, and was never loaded here.
  std::shared_ptr<const PluginLibrary> library;
};

// Where bare names are looked up: $DSAT_PLUGIN_PATH, <folder of this program>/plugins, <libdir>/dsat/plugins.
std::vector<std::filesystem::path> plugin_search_path();

// A path (it has a slash) as it is; a bare name as lib<name>.so on the search path.
Result<std::filesystem::path> find_plugin(const std::string& name_or_path);

// Does this file come with dsat? Then it runs in this process unless Isolation::all is asked for.
bool is_own_plugin(const std::filesystem::path& file);

// All that a library offers. Not an ELF file, a missing or undefined symbol, a wrong ABI: Status::invalid.
Result<std::vector<PluginInfo>> describe_plugin(const std::filesystem::path& file,
                                                const PluginProcesses& processes = PluginProcesses());

// The one strategy of this kind in the library. If there are several, the one that has the file's name (lib<name>.so),
// else an error that names all.
Result<PluginInfo> find_strategy(const std::string& name_or_path, PluginKind kind,
                                 const PluginProcesses& processes = PluginProcesses());

// Those that come with dsat, by name as find_strategy() finds them. One that cannot be used is left out.
std::vector<PluginInfo> own_strategies(PluginKind kind, const PluginProcesses& processes = PluginProcesses());

// Turns texts as typed into a value for every declared option: types, ranges and choices checked, defaults filled in.
Result<Json> parse_plugin_options(const PluginInfo& plugin, const Json& texts_by_name);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGINS_H_
