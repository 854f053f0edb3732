// Finds plugins on the search path, chooses the strategy for a name, and reads its options. Errors are thrown inside
// and returned by the public functions.
#include "dsat/host/plugins.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <sstream>
#include <system_error>

#include "base/guarded.h"
#include "base/installed.h"
#include "dsat/base/numbers.h"
#include "plugin/isolated_strategy.h"
#include "plugin/plugin_library.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBundledPlugins[] = {"asha", "binary", "grid", "guided", "profiler", "random"};

const char* kind_name(PluginKind kind) { return kind == PluginKind::searcher ? "searcher" : "profiler"; }

// Parses `text` as a declared type; nullopt: it is not of this type.
std::optional<Json> value_of(const std::string& type, const std::string& text) {
  if (type == "int") {
    const std::optional<int64_t> value = parse_integer(text);
    return value ? std::optional<Json>(*value) : std::nullopt;
  }
  if (type == "number") {
    const std::optional<double> value = parse_number(text);
    return value ? std::optional<Json>(*value) : std::nullopt;
  }
  if (type != "bool") return Json(text);
  for (const char* yes : {"true", "1", "yes", "on"}) {
    if (text == yes) return Json(true);
  }
  for (const char* no : {"false", "0", "no", "off"}) {
    if (text == no) return Json(false);
  }
  return std::nullopt;
}

// Converts a typed text, or a JSON value from an embedding program, to the declared type.
Json parse_value(const PluginInfo& plugin, const Json& option, const Json& given) {
  const std::string name = option["name"], type = option["type"];
  const std::string text = given.is_string() ? given.get<std::string>() : given.dump();
  const auto refuse = [&](const std::string& wants) {
    return Error(fmt::format("option --{} of {}: '{}' is not {}", name, plugin.name, text, wants));
  };
  std::optional<Json> value = value_of(type, text);
  if (!value) throw refuse(type == "int" ? "a whole number" : type == "number" ? "a number" : "true or false");
  if (type == "choice") {
    const std::vector<std::string> choices = option["choices"];
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return *value;
    throw refuse(fmt::format("one of {}", fmt::join(choices, ", ")));
  }
  if (option.contains("min") && *value < option["min"]) throw refuse("at least " + option["min"].dump());
  if (option.contains("max") && *value > option["max"]) throw refuse("at most " + option["max"].dump());
  return *std::move(value);
}

fs::path find_file(const std::string& name_or_path) {
  if (name_or_path.empty()) {
    throw Error("no plugin is named; give a name such as guided or the path of a lib*.so");
  }
  if (name_or_path.find('/') != std::string::npos || is_python_plugin(name_or_path)) return name_or_path;
  const bool is_file_name = name_or_path.size() > 3 && name_or_path.compare(name_or_path.size() - 3, 3, ".so") == 0;
  const std::string file = is_file_name ? name_or_path : "lib" + name_or_path + ".so";
  std::vector<std::string> tried;
  std::error_code error;
  for (const fs::path& folder : plugin_search_path()) {
    if (fs::exists(folder / file, error)) return folder / file;
    tried.push_back(folder.string());
  }
  const std::string what_next = fs::exists(file, error) ? fmt::format("type ./{} for the one in this folder", file)
                                                        : "`dsat-host plugins` lists the plugins";
  throw Error(fmt::format("no plugin '{}': no {} in {}; {}", name_or_path, file, fmt::join(tried, ", "), what_next));
}

bool runs_apart(const fs::path& file, Isolation isolation) {
  return isolation == Isolation::process || is_python_plugin(file) ||
         (isolation == Isolation::automatic && !is_bundled_plugin(file));
}

// A separate process loads the plugin first, so that a crash during loading does not end this process.
std::vector<PluginInfo> describe(const fs::path& file, const PluginProcesses& processes) {
  if (runs_apart(file, processes.isolation)) return describe_apart(file, processes);
  try_apart(file, processes, [&] { describe_apart(file, processes); });
  return PluginLibrary::load(file)->describe();
}

// The parts of "FILE.py:CLASS"; the class is empty if none is named.
std::pair<std::string, std::string> split_class(const std::string& name_or_path) {
  const size_t colon = name_or_path.rfind(':');
  if (colon == std::string::npos || !is_python_plugin(name_or_path.substr(0, colon))) return {name_or_path, ""};
  return {name_or_path.substr(0, colon), name_or_path.substr(colon + 1)};
}

PluginInfo strategy_of(const fs::path& file, const std::string& name, PluginKind kind,
                       const PluginProcesses& processes) {
  const std::vector<PluginInfo> all = describe(file, processes);
  std::vector<PluginInfo> fitting;
  std::vector<std::string> names;
  for (const PluginInfo& info : all) {
    if (info.kind != kind || (!name.empty() && info.name != name)) continue;
    fitting.push_back(info);
    names.push_back(info.name);
  }
  if (fitting.empty() && !name.empty()) {
    for (const PluginInfo& info : all) names.push_back(info.name);
    throw Error(fmt::format("plugin {}: has no {} {}; it has {}", file.string(), kind_name(kind), name,
                            fmt::join(names, ", ")));
  }
  if (fitting.empty()) {
    throw Error(fmt::format("plugin {}: offers no {}; it is a {}", file.string(), kind_name(kind),
                            kind_name(all.front().kind)));
  }
  if (fitting.size() == 1) return fitting.front();
  for (const PluginInfo& info : fitting) {
    if (file.filename() == "lib" + info.name + ".so") return info;
  }
  const std::string what_to_do = is_python_plugin(file)
                                     ? fmt::format("name one: {}:{}", file.string(), names.front())
                                     : "make a library of each, or name the library after the one to use";
  throw Error(
      fmt::format("plugin {}: offers several of its kind ({}); {}", file.string(), fmt::join(names, ", "), what_to_do));
}

Json parse_options(const PluginInfo& plugin, const Json& texts_by_name) {
  Json values = Json::object();
  for (const Json& option : plugin.options) {
    const std::string name = option["name"];
    const auto given = texts_by_name.find(name);
    values[name] = given == texts_by_name.end() ? option["default"] : parse_value(plugin, option, *given);
  }
  for (const auto& item : texts_by_name.items()) {
    if (values.contains(item.key())) continue;
    std::string names;
    for (const Json& option : plugin.options) names += " --" + option["name"].get<std::string>();
    throw Error(fmt::format("option --{}: {} has no such option; it has{}", item.key(), plugin.name,
                            names.empty() ? " none" : names));
  }
  return values;
}

}  // namespace

std::vector<fs::path> plugin_search_path() {
  std::vector<fs::path> path;
  if (const char* variable = std::getenv("DSAT_PLUGIN_PATH")) {
    std::istringstream entries(variable);
    for (std::string entry; std::getline(entries, entry, ':');) {
      if (!entry.empty()) path.emplace_back(entry);
    }
  }
  for (fs::path& folder : bundled_plugin_folders()) path.push_back(std::move(folder));
  return path;
}

bool is_python_plugin(const fs::path& file) { return file.extension() == ".py"; }

std::string address_of(const PluginInfo& plugin) {
  const std::string file = plugin.file.string();
  return is_python_plugin(plugin.file) ? file + ":" + plugin.name : file;
}

bool is_bundled_plugin(const fs::path& file) {
  const auto* known = std::find_if(std::begin(kBundledPlugins), std::end(kBundledPlugins),
                                   [&](const char* name) { return file.filename() == fmt::format("lib{}.so", name); });
  if (known == std::end(kBundledPlugins)) return false;
  std::error_code error;
  const fs::path folder = fs::canonical(file.parent_path().empty() ? "." : file.parent_path(), error);
  const std::vector<fs::path> own = bundled_plugin_folders();
  return !error && std::any_of(own.begin(), own.end(), [&](const fs::path& candidate) {
    std::error_code missing;
    return fs::canonical(candidate, missing) == folder && !missing;
  });
}

Result<fs::path> find_plugin(const std::string& name_or_path) {
  return as_result([&] { return find_file(name_or_path); });
}

Result<std::vector<PluginInfo>> describe_plugin(const fs::path& file, const PluginProcesses& processes) {
  return as_result([&] { return describe(file, processes); });
}

Result<PluginInfo> find_strategy(const std::string& name_or_path, PluginKind kind, const PluginProcesses& processes) {
  return as_result([&] {
    const auto [file, name] = split_class(name_or_path);
    return strategy_of(find_file(file), name, kind, processes);
  });
}

std::vector<PluginInfo> bundled_strategies(PluginKind kind, const PluginProcesses& processes) {
  std::vector<PluginInfo> found;
  for (const char* name : kBundledPlugins) {
    auto strategy = find_strategy(name, kind, processes);
    if (strategy.ok()) found.push_back(std::move(strategy.value()));
  }
  return found;
}

Result<Json> parse_plugin_options(const PluginInfo& plugin, const Json& texts_by_name) {
  return as_result([&] { return parse_options(plugin, texts_by_name); });
}

}  // namespace dsat::host
