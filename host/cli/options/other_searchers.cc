// Each such option becomes a name that cannot be meant, with a message of its own.
#include "options/other_searchers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>

namespace dsat::cli {
namespace {

bool is_known(const OptionSet& set, const std::string& spelling) {
  return set.find(spelling) != nullptr || set.clash(spelling) != nullptr;
}

}  // namespace

std::vector<host::PluginInfo> searchers_to_ask(const OptionSet& set, const Tokens& arguments,
                                               const host::PluginProcesses& processes) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  const bool all_known = std::none_of(arguments.begin(), end, [&](const std::string& token) {
    return token.rfind("--", 0) == 0 && !is_known(set, token.substr(0, token.find('=')));
  });
  std::vector<host::PluginInfo> searchers;
  if (all_known) return searchers;
  for (const char* name : {"guided", "asha", "binary", "random", "grid"}) {
    if (auto found = host::find_strategy(name, host::PluginKind::searcher, processes); found.ok()) {
      searchers.push_back(std::move(found.value()));
    }
  }
  return searchers;
}

void explain_options_of(OptionSet& set, const std::vector<host::PluginInfo>& searchers) {
  std::map<std::string, std::vector<std::string>> owners;  // by an option's name
  for (const host::PluginInfo& searcher : searchers) {
    for (const Json& declared : searcher.options) {
      const std::string name = declared.value("name", "");
      if (!is_known(set, "--" + name)) owners[name].push_back("--searcher " + searcher.name);
    }
  }
  for (const auto& [name, names] : owners) {
    set.add(OptionSet::Clash{
        name, {}, fmt::format("unknown option --{}: it belongs to {}", name, fmt::join(names, " and "))});
  }
}

}  // namespace dsat::cli
