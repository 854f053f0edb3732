// Takes the first word after Python's own options, and looks for a file of that name.
#include "command/missing_script.h"

#include <algorithm>
#include <system_error>

namespace dsat::host {

namespace fs = std::filesystem;

namespace {

// Accepts python, python3, python3.11.
bool is_python(const std::string& program) {
  const std::string name = fs::path(program).filename().string();
  return name.rfind("python", 0) == 0 && name.find_first_not_of("0123456789.", 6) == std::string::npos;
}

// -c CODE and -m MODULE replace a script. In a group of letters they come last.
bool replaces_script(const std::string& option) {
  return option.rfind("--", 0) != 0 && option.find_first_of("cm") != std::string::npos;
}

}  // namespace

std::optional<std::string> missing_script(const Argv& argv, const fs::path& cwd,
                                          const std::vector<fs::path>& includes) {
  if (argv.empty() || !is_python(argv.front())) return std::nullopt;
  const auto word = std::find_if(argv.begin() + 1, argv.end(),
                                 [](const std::string& option) { return option.empty() || option.front() != '-'; });
  if (word == argv.end() || std::any_of(argv.begin() + 1, word, replaces_script)) return std::nullopt;
  const fs::path script(*word);
  // A trial replaces {trial_dir} by its own folder.
  if (script.extension() != ".py" || word->find('{') != std::string::npos) return std::nullopt;
  std::error_code error;
  if (fs::exists(cwd / script, error) || error) return std::nullopt;
  const bool is_included = std::any_of(includes.begin(), includes.end(), [&](const fs::path& include) {
    return (include.has_filename() ? include : include.parent_path()).filename() == *script.begin();
  });
  return is_included ? std::nullopt : std::optional(*word);
}

}  // namespace dsat::host
