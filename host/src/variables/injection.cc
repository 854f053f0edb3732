// The hook's folder comes first in PYTHONPATH, as in a trial.
#include "variables/injection.h"

#include <fmt/format.h>

namespace dsat::host {

std::vector<std::string> with_injection(std::vector<std::string> argv, const std::filesystem::path& config_file,
                                        const std::filesystem::path& hook, const Environment& environment) {
  const std::string users = get_variable(environment, "PYTHONPATH").value_or("");
  const std::string path = users.empty() ? hook.string() : fmt::format("{}:{}", hook.string(), users);
  argv.insert(argv.begin(),
              {"env", fmt::format("PYTHONPATH={}", path), fmt::format("{}={}", kInjectVariable, config_file.string())});
  return argv;
}

}  // namespace dsat::host
