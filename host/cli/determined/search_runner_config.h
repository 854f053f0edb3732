// --search-runner-config: Determined's configuration of its search task. dsat uses the name and max_restarts.
//
// Threading: reads one file. Errors: dsat::Error "FILE:LINE:COLUMN: KEY ...", as YamlFile has them.
#ifndef DSAT_CLI_DETERMINED_SEARCH_RUNNER_CONFIG_H_
#define DSAT_CLI_DETERMINED_SEARCH_RUNNER_CONFIG_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dsat::cli {

inline constexpr int kDefaultSearchRunnerRestarts = 5;  // Determined's

struct SearchRunner {
  std::string name;                 // of the study; empty: use the experiment's name
  std::optional<int> max_restarts;  // nullopt: not given
  std::vector<std::string> notices;
};

SearchRunner read_search_runner(const std::filesystem::path& file);

}  // namespace dsat::cli

#endif  // DSAT_CLI_DETERMINED_SEARCH_RUNNER_CONFIG_H_
