// Knows where ms-swift keeps its presets: swift/config since version 4, swift/llm/ds_config before.
#include "command/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>
#include <vector>

#include "base/python_packages.h"
#include "command/launchers.h"
#include "command/own_launchers.h"
#include "dsat/error.h"

namespace dsat::host {

namespace fs = std::filesystem;

namespace {

// swift's own program, or one of its scripts.
bool is_swift(const Argv& argv) {
  if (find_framework(argv) == Framework::swift) return true;
  return std::any_of(argv.begin(), argv.end(), [](const std::string& word) {
    return word.find("swift/cli/") != std::string::npos || word.rfind("swift.cli.", 0) == 0;
  });
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".json") names.push_back(it->path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The word that starts Python or swift: packages lie beside it.
std::string program_of(const Argv& argv) {
  const auto is_program = [](const std::string& word) {
    const std::string name = fs::path(word).filename().string();
    return name == "swift" || name == "torchrun" || name.rfind("python", 0) == 0;
  };
  const auto word = std::find_if(argv.begin(), argv.end(), is_program);
  return word == argv.end() ? argv.front() : *word;
}

}  // namespace

std::optional<fs::path> find_preset(const Argv& argv, const std::string& name, const std::string& where,
                                    const fs::path& cwd, const Environment& environment) {
  if (!is_swift(argv)) return std::nullopt;
  const auto folder = find_in_packages({"swift/config", "swift/llm/ds_config"}, program_of(argv), cwd, environment);
  if (!folder) {
    throw Error(
        fmt::format("{} {}: the package swift, which has this preset, was not found: copy swift/config/{}.json from "
                    "where `pip show ms-swift` says it lies, and name the copy",
                    where, name, name));
  }
  fs::path file = *folder / (name + ".json");
  std::error_code error;
  if (fs::is_regular_file(file, error)) return file;
  throw Error(fmt::format("{} {}: neither a file nor a preset of swift, which has {}", where, name,
                          fmt::join(names_in(*folder), ", ")));
}

}  // namespace dsat::host
