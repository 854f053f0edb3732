// dsat-host plugins: opens every library on the search path in a process of its own and prints its description. A
// library that cannot be used is listed with the reason.
#include "dsat/host/plugins.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "commands/commands.h"
#include "commands/host_options.h"
#include "commands/subcommand.h"
#include "terminal/exit_status.h"

namespace dsat::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{10};  // for a library that does not answer

constexpr const char* kUsageText =
    "Usage: dsat-host plugins [--json]\n"
    "\n"
    "Lists the plugins on the search path: $DSAT_PLUGIN_PATH, plugins/ beside dsat-host, the system's folder.\n"
    "\n";

// lib*.so in a folder, sorted by name; none if the folder cannot be read.
std::vector<fs::path> libraries_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.rfind("lib", 0) == 0 && it->path().extension() == ".so") files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

const char* kind_text(host::PluginKind kind) { return kind == host::PluginKind::searcher ? "searcher" : "profiler"; }

Json as_json(const host::PluginInfo& plugin) {
  return Json{{"file", plugin.file.string()},
              {"kind", kind_text(plugin.kind)},
              {"id", plugin.id},
              {"name", plugin.name},
              {"version", plugin.version},
              {"summary", plugin.summary},
              {"abi", fmt::format("{}.{}", plugin.abi_major, plugin.abi_minor)},
              {"state_version", plugin.state_version},
              {"options", plugin.options},
              {"study", plugin.study}};
}

void print_plugin(const host::PluginInfo& plugin, Console& console) {
  console.line(
      one_line(fmt::format("{} {} {}: {}", kind_text(plugin.kind), plugin.name, plugin.version, plugin.summary)));
  console.line(fmt::format("    {}", plugin.file.string()));
  for (const Json& option : plugin.options) {
    console.line(
        one_line(fmt::format("    --{} (={})  {}", option.value("name", ""),
                             option.contains("default") ? option["default"].dump() : "", option.value("help", ""))));
  }
  for (const auto& wish : plugin.study.items()) {
    std::string name = wish.key();
    std::replace(name.begin(), name.end(), '_', '-');
    console.line(one_line(fmt::format("    --{} (={})  where it is not given", name, wish.value().dump())));
  }
}

}  // namespace

int plugins(const Tokens& arguments, Console& console) {
  const auto request = read_request(plugins_options(), arguments, kUsageText, console);
  if (!request) return kBestFound;
  refuse_operands(request->operands, "plugins");
  Json found = Json::array(), broken = Json::array();
  host::PluginProcesses apart;  // a plugin that crashes ends only its own process
  apart.isolation = host::Isolation::process;
  apart.plugin_timeout = kPatience;
  for (const fs::path& folder : host::plugin_search_path()) {
    for (const fs::path& file : libraries_in(folder)) {
      const auto described = host::describe_plugin(file, apart);
      if (!described.ok()) {
        broken.push_back(Json{{"file", file.string()}, {"reason", described.status().message()}});
        if (!console.json()) console.error(described.status().message());
        continue;
      }
      for (const host::PluginInfo& plugin : described.value()) {
        found.push_back(as_json(plugin));
        if (!console.json()) print_plugin(plugin, console);
      }
    }
  }
  if (console.json()) {
    console.print_json(Json{{"plugins", std::move(found)}, {"broken", std::move(broken)}});
  } else if (found.empty()) {
    console.line("no plugin on the search path:");
    for (const fs::path& folder : host::plugin_search_path()) console.line(fmt::format("    {}", folder.string()));
  }
  return kBestFound;
}

}  // namespace dsat::cli
