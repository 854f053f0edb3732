// Takes the first word after the options of Python or of the launcher, and looks for a file of that name.
#include "command/missing_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "command/environment_use.h"
#include "command/launchers.h"

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

bool is_launcher(const std::string& program) {
  const std::string name = fs::path(program).filename().string();
  return name == "deepspeed" || name == "torchrun" || name == "accelerate" || name == "accelerate-launch";
}

// Returns the place of the script; argv.size(): a module or code takes its place, or another program runs it elsewhere.
size_t place_of_script(const Argv& argv) {
  size_t first = 0;
  while (first < argv.size() && (argv[first] == "env" || is_assignment(argv[first]))) ++first;
  if (first == argv.size()) return first;
  const LauncherUse launcher = find_launcher(argv);
  const bool is_python_program = is_python(argv[first]);
  if (launcher.kind != Launcher::none && !launcher.wrapper && (is_python_program || is_launcher(argv[first]))) {
    const bool is_other =
        std::any_of(argv.begin() + static_cast<std::ptrdiff_t>(launcher.begin),
                    argv.begin() + static_cast<std::ptrdiff_t>(launcher.end), [](const std::string& word) {
                      const std::string option = with_underscores(word);
                      return option == "-m" || option == "--module" || option == "--no_python";
                    });
    return is_other ? argv.size() : launcher.end;
  }
  if (!is_python_program) return argv.size();
  const auto word = std::find_if(argv.begin() + static_cast<std::ptrdiff_t>(first) + 1, argv.end(),
                                 [](const std::string& option) { return option.empty() || option.front() != '-'; });
  const bool is_other = std::any_of(argv.begin() + static_cast<std::ptrdiff_t>(first) + 1, word, replaces_script);
  return is_other ? argv.size() : static_cast<size_t>(word - argv.begin());
}

}  // namespace

std::string missing_script(const Argv& argv, const fs::path& cwd, const std::vector<fs::path>& includes) {
  const size_t place = place_of_script(argv);
  if (place >= argv.size()) return "";
  const std::string& word = argv[place];
  const fs::path script(word);
  std::error_code error;
  if (script.extension() != ".py") {
    const bool is_behind = place + 1 < argv.size() && is_python_script(argv[place + 1]);
    const bool is_file = word.find('/') != std::string::npos || fs::is_regular_file(cwd / script, error);
    if (!is_behind || !is_file || find_launcher(argv).kind == Launcher::none) return "";
    return fmt::format(
        "the launcher would run '{}' as the script, and {} is behind it: write the option that takes {} "
        "before it, as in --hostfile {}",
        word, argv[place + 1], word, word);
  }
  // A trial replaces {trial_dir} by its own folder.
  if (word.find('{') != std::string::npos || fs::exists(cwd / script, error) || error) return "";
  const bool is_included = std::any_of(includes.begin(), includes.end(), [&](const fs::path& include) {
    return (include.has_filename() ? include : include.parent_path()).filename() == *script.begin();
  });
  if (is_included) return "";
  return fmt::format("no script '{}' in {}: name the file that COMMAND trains with", word, cwd.string());
}

}  // namespace dsat::host
