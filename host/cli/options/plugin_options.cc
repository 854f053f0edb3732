#include "options/plugin_options.h"

#include <algorithm>

namespace dsat::cli {
namespace {

std::string role(const host::PluginInfo& plugin) {
  return plugin.kind == host::PluginKind::searcher ? "searcher" : "profiler";
}

std::string qualified(const host::PluginInfo& plugin, const std::string& name) { return role(plugin) + "." + name; }

bool declares(const host::PluginInfo& plugin, const std::string& name) {
  return std::any_of(plugin.options.begin(), plugin.options.end(),
                     [&](const Json& option) { return option.value("name", "") == name; });
}

std::string shown_value(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// What --help writes for the value: the choices, or the type.
std::string value_name(const Json& declared) {
  const std::string type = declared.value("type", "string");
  if (type == "int") return "N";
  if (type == "number") return "X";
  if (type == "bool") return "BOOL";
  if (type != "choice" || !declared.contains("choices")) return "TEXT";
  std::string all;
  for (const Json& choice : declared["choices"]) all += (all.empty() ? "" : "|") + shown_value(choice);
  return all;
}

Option as_option(const host::PluginInfo& plugin, const Json& declared) {
  Option option;
  option.takes = declared.value("type", "string") == "bool" ? Takes::attached : Takes::value;
  option.value_name = value_name(declared);
  if (declared.contains("default")) option.default_shown = shown_value(declared["default"]);
  option.help = declared.value("help", "");
  option.group = "Options of " + role(plugin) + " " + plugin.name;
  return option;
}

std::string clash_message(const std::string& name, const std::vector<std::string>& roles, bool with_host) {
  const std::string bare = "--" + name;
  std::string owners, spellings, needed;
  for (const std::string& role : roles) {
    owners += (owners.empty() ? "" : " and of the ") + role;
    spellings += (spellings.empty() ? "" : " or ") + ("--" + role + "." + name);
    needed += (needed.empty() ? "" : " and ") + ("--" + role + "." + name);
  }
  if (!with_host) return bare + " is an option of the " + owners + ": type " + spellings;
  return bare + " is an option of dsat-host and of the " + owners + ": type " + spellings + " for the plugin's; " +
         bare + " is dsat-host's once " + needed + " is given too";
}

}  // namespace

void add_plugin_options(OptionSet& set, const host::PluginInfo& searcher, const host::PluginInfo& profiler) {
  const OptionSet host_options = set;
  for (const host::PluginInfo* plugin : {&searcher, &profiler}) {
    const host::PluginInfo& other = plugin == &searcher ? profiler : searcher;
    for (const Json& declared : plugin->options) {
      const std::string name = declared.value("name", "");
      const bool in_host = host_options.find("--" + name) != nullptr, in_other = declares(other, name);
      Option option = as_option(*plugin, declared);
      option.name = name;
      option.aliases.push_back("--" + qualified(*plugin, name));
      if (in_host || in_other) {
        option.name = qualified(*plugin, name);
        option.aliases.clear();
      }
      set.add(std::move(option));
      // Of a clash between the two plugins the searcher's turn tells.
      if ((!in_host && !in_other) || (in_other && plugin == &profiler)) continue;
      std::vector<std::string> roles{role(*plugin)};
      if (in_other) roles.push_back(role(other));
      std::vector<std::string> needs;
      for (const std::string& owner : roles) needs.push_back(owner + "." + name);
      set.add(
          OptionSet::Clash{name, in_host ? needs : std::vector<std::string>(), clash_message(name, roles, in_host)});
    }
  }
}

Json given_plugin_options(const OptionSet& set, const Values& values, const host::PluginInfo& plugin) {
  Json given = Json::object();
  for (const Json& declared : plugin.options) {
    const std::string name = declared.value("name", "");
    const Option* option = set.find("--" + qualified(plugin, name));
    if (option == nullptr) continue;
    if (const auto text = values.text(option->name)) given[name] = *text;
  }
  return given;
}

}  // namespace dsat::cli
