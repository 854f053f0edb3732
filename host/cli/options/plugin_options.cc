// Turns the options that a plugin declares into options of the kit, and finds names that two owners declare. Values
// stay text; the host checks them against the declaration.
#include "options/plugin_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace dsat::cli {
namespace {

std::string role(const host::PluginInfo& plugin) {
  return plugin.kind == host::PluginKind::searcher ? "searcher" : "profiler";
}

std::string qualified(const host::PluginInfo& plugin, const std::string& name) {
  return fmt::format("{}.{}", role(plugin), name);
}

bool declares(const host::PluginInfo& plugin, const std::string& name) {
  return std::any_of(plugin.options.begin(), plugin.options.end(),
                     [&](const Json& option) { return option.value("name", "") == name; });
}

std::string shown_value(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// The value as --help shows it: the choices, or a name for the type.
std::string value_name(const Json& declared) {
  const std::string type = declared.value("type", "string");
  if (type == "int") return "N";
  if (type == "number") return "X";
  if (type == "bool") return "[=BOOL]";
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
  option.group = fmt::format("Options of {} {}", role(plugin), plugin.name);
  return option;
}

std::string clash_message(const std::string& name, const std::vector<std::string>& roles, bool with_host) {
  const std::string bare = "--" + name;
  std::vector<std::string> qualified_names;
  for (const std::string& role : roles) qualified_names.push_back(fmt::format("--{}.{}", role, name));
  const std::string owners = fmt::format("{}", fmt::join(roles, " and of the "));
  const std::string spellings = fmt::format("{}", fmt::join(qualified_names, " or "));
  const std::string needed = fmt::format("{}", fmt::join(qualified_names, " and "));
  if (!with_host) return fmt::format("{} is an option of the {}: type {}", bare, owners, spellings);
  return fmt::format(
      "{0} is an option of dsat-host and of the {1}: type {2} for the plugin's; {0} is dsat-host's once {3} is "
      "given too",
      bare, owners, spellings, needed);
}

// Refuses "--no-greedy", which other programs take, with a hint: a plugin's switch is turned off by its value. A plugin
// may still declare an option of that name.
void explain_negations(OptionSet& set, const host::PluginInfo& plugin) {
  for (const Json& declared : plugin.options) {
    const std::string name = declared.value("name", ""), negated = "no-" + name;
    const Option* option = set.find("--" + qualified(plugin, name));
    if (option == nullptr || option->takes != Takes::attached || set.find("--" + negated) != nullptr) continue;
    if (set.clash("--" + negated) != nullptr) continue;
    set.add(OptionSet::Clash{negated, {}, fmt::format("unknown option --{}: type --{}=false", negated, option->name)});
  }
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
      // A clash between the two plugins is declared once, with the searcher's options.
      if ((!in_host && !in_other) || (in_other && plugin == &profiler)) continue;
      std::vector<std::string> roles{role(*plugin)};
      if (in_other) roles.push_back(role(other));
      std::vector<std::string> needs;
      for (const std::string& owner : roles) needs.push_back(owner + "." + name);
      set.add(
          OptionSet::Clash{name, in_host ? needs : std::vector<std::string>(), clash_message(name, roles, in_host)});
    }
  }
  // All names must be known first, because one of them may begin with "no-".
  for (const host::PluginInfo* plugin : {&searcher, &profiler}) explain_negations(set, *plugin);
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
