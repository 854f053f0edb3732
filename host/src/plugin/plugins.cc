#include "dsat/host/plugins.h"

#include <boost/dll/runtime_symbol_info.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <system_error>

#include "plugin/plugin_library.h"

#ifndef DSAT_PLUGIN_DIR
#define DSAT_PLUGIN_DIR "/usr/local/lib/dsat/plugins"
#define DSAT_PLUGIN_DIR_FROM_BIN "../lib/dsat/plugins"
#endif

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

std::string joined(const Json& list) {
  std::string text;
  for (const Json& item : list) text += (text.empty() ? "" : ", ") + item.get<std::string>();
  return text;
}

const char* kind_name(PluginKind kind) { return kind == PluginKind::searcher ? "searcher" : "profiler"; }

Status bad_option(const PluginInfo& plugin, const std::string& name, const std::string& text,
                  const std::string& wants) {
  return Status::invalid("option --" + name + " of " + plugin.name + ": '" + text + "' is not " + wants);
}

Result<Json> parse_integer(const PluginInfo& plugin, const std::string& name, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return bad_option(plugin, name, text, "a whole number");
  return Json(value);
}

Result<Json> parse_number(const PluginInfo& plugin, const std::string& name, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
  if (!whole) return bad_option(plugin, name, text, "a number");
  return Json(value);
}

Result<Json> parse_bool(const PluginInfo& plugin, const std::string& name, const std::string& text) {
  for (const char* yes : {"true", "1", "yes", "on"}) {
    if (text == yes) return Json(true);
  }
  for (const char* no : {"false", "0", "no", "off"}) {
    if (text == no) return Json(false);
  }
  return bad_option(plugin, name, text, "true or false");
}

// A text as typed, or a JSON value that an embedder gave, as a value of the declared type.
Result<Json> parse_value(const PluginInfo& plugin, const Json& option, const Json& given) {
  const std::string name = option["name"], type = option["type"];
  const std::string text = given.is_string() ? given.get<std::string>() : given.dump();
  Result<Json> value = type == "int"      ? parse_integer(plugin, name, text)
                       : type == "number" ? parse_number(plugin, name, text)
                       : type == "bool"   ? parse_bool(plugin, name, text)
                                          : Result<Json>(Json(text));
  if (!value.ok()) return value;
  if (type == "choice") {
    for (const Json& choice : option["choices"]) {
      if (choice == value.value()) return value;
    }
    return bad_option(plugin, name, text, "one of " + joined(option["choices"]));
  }
  if (option.contains("min") && value.value() < option["min"]) {
    return bad_option(plugin, name, text, "at least " + option["min"].dump());
  }
  if (option.contains("max") && value.value() > option["max"]) {
    return bad_option(plugin, name, text, "at most " + option["max"].dump());
  }
  return value;
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
  boost::dll::fs::error_code error;
  const auto program = boost::dll::program_location(error);
  const fs::path installed = DSAT_PLUGIN_DIR;
  if (!error) {
    const fs::path folder = fs::path(program.string()).parent_path();
    path.push_back(folder / "plugins");
    // <libdir>/dsat/plugins of a tree that was moved since it was installed.
    const fs::path moved = (folder / DSAT_PLUGIN_DIR_FROM_BIN).lexically_normal();
    if (moved != installed) path.push_back(moved);
  }
  path.push_back(installed);
  return path;
}

Result<fs::path> find_plugin(const std::string& name_or_path) {
  if (name_or_path.empty())
    return Status::invalid("no plugin is named; give a name such as guided or the path of a lib*.so");
  if (name_or_path.find('/') != std::string::npos) return fs::path(name_or_path);
  const bool is_file_name = name_or_path.size() > 3 && name_or_path.compare(name_or_path.size() - 3, 3, ".so") == 0;
  const std::string file = is_file_name ? name_or_path : "lib" + name_or_path + ".so";
  std::string tried;
  std::error_code error;
  for (const fs::path& folder : plugin_search_path()) {
    if (fs::exists(folder / file, error)) return folder / file;
    tried += (tried.empty() ? "" : ", ") + folder.string();
  }
  return Status::invalid("no plugin '" + name_or_path + "': no " + file + " in " + tried +
                         "; `dsat-host plugins` lists what is there");
}

Result<std::vector<PluginInfo>> describe_plugin(const fs::path& file) {
  Result<PluginLibrary> library = PluginLibrary::load(file);
  if (!library.ok()) return library.status();
  return library->describe();
}

Result<PluginInfo> find_strategy(const std::string& name_or_path, PluginKind kind) {
  Result<fs::path> file = find_plugin(name_or_path);
  if (!file.ok()) return file.status();
  Result<std::vector<PluginInfo>> all = describe_plugin(file.value());
  if (!all.ok()) return all.status();
  std::vector<PluginInfo> fitting;
  std::string names;
  for (const PluginInfo& info : all.value()) {
    if (info.kind != kind) continue;
    fitting.push_back(info);
    names += (names.empty() ? "" : ", ") + info.name;
  }
  if (fitting.empty()) {
    return Status::invalid("plugin " + file->string() + ": offers no " + kind_name(kind) + "; it is a " +
                           kind_name(all->front().kind));
  }
  if (fitting.size() == 1) return fitting.front();
  for (const PluginInfo& info : fitting) {
    if (file->filename() == "lib" + info.name + ".so") return info;
  }
  return Status::invalid("plugin " + file->string() + ": offers several of its kind (" + names +
                         "); make a library of each, or name the library after the one to use");
}

Result<Json> parse_plugin_options(const PluginInfo& plugin, const Json& texts_by_name) {
  Json values = Json::object();
  for (const Json& option : plugin.options) {
    const std::string name = option["name"];
    if (!texts_by_name.contains(name)) {
      values[name] = option["default"];
      continue;
    }
    Result<Json> value = parse_value(plugin, option, texts_by_name[name]);
    if (!value.ok()) return value.status();
    values[name] = std::move(value).value();
  }
  for (const auto& item : texts_by_name.items()) {
    if (values.contains(item.key())) continue;
    std::string names;
    for (const Json& option : plugin.options) names += " --" + option["name"].get<std::string>();
    return Status::invalid("option --" + item.key() + ": " + plugin.name + " has no such option; it has" +
                           (names.empty() ? " none" : names));
  }
  return values;
}

}  // namespace dsat::host
