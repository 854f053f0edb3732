#include "determined/search_runner_config.h"

#include "determined/read_experiment.h"

namespace dsat::cli {

SearchRunner read_search_runner(const std::filesystem::path& file) {
  const YamlFile yaml = YamlFile::load(file);
  refuse_misspelt_keys(yaml);
  SearchRunner runner;
  runner.name = yaml.text("name");
  if (const Json* restarts = yaml.find("max_restarts")) {
    if (!restarts->is_number_integer() || *restarts < 0 || *restarts > INT32_MAX) {
      yaml.refuse("max_restarts", "must be an integer of at least 0, it has " + restarts->dump());
    }
    runner.max_restarts = restarts->get<int>();
  }
  std::string list;
  for (const std::string& key : keys_without_effect(yaml, {"name", "max_restarts"})) {
    list += (list.empty() ? "" : ", ") + key;
  }
  if (!list.empty()) {
    runner.notices.push_back(file.string() + ": without effect, since the search runs in dsat-host itself: " + list);
  }
  return runner;
}

}  // namespace dsat::cli
