// Reads the two keys that dsat uses; one notice lists the others. A misspelt key is refused, as in an experiment file.
#include "determined/search_runner_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "determined/misspelt_keys.h"

namespace dsat::cli {

SearchRunner read_search_runner(const std::filesystem::path& file) {
  const YamlFile yaml = YamlFile::load(file);
  refuse_misspelt_keys(yaml);
  SearchRunner runner;
  runner.name = yaml.text("name");
  if (const Json* restarts = yaml.find("max_restarts")) {
    if (!restarts->is_number_integer() || *restarts < 0 || *restarts > INT32_MAX) {
      yaml.refuse("max_restarts", fmt::format("must be an integer of at least 0, it has {}", restarts->dump()));
    }
    runner.max_restarts = restarts->get<int>();
  }
  const std::vector<std::string> others = keys_without_effect(yaml, {"name", "max_restarts"});
  if (!others.empty()) {
    runner.notices.push_back(fmt::format("{}: without effect, since the search runs in dsat-host itself: {}",
                                         file.string(), fmt::join(others, ", ")));
  }
  return runner;
}

}  // namespace dsat::cli
