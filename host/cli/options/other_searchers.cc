// Makes the set refuse each of these options with a message of its own.
#include "options/other_searchers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <string>

namespace dsat::cli {

void explain_options_of(OptionSet& set, const std::vector<host::PluginInfo>& searchers) {
  std::map<std::string, std::vector<std::string>> owners;  // by an option's name
  for (const host::PluginInfo& searcher : searchers) {
    for (const Json& declared : searcher.options) {
      const std::string name = declared.value("name", "");
      if (set.find("--" + name) != nullptr || set.clash("--" + name) != nullptr) continue;
      owners[name].push_back("--searcher " + searcher.name);
    }
  }
  for (const auto& [name, names] : owners) {
    set.add(OptionSet::Clash{
        name, {}, fmt::format("unknown option --{}: it belongs to {}", name, fmt::join(names, " and "))});
  }
}

}  // namespace dsat::cli
