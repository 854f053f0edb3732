// Looks for exact spellings of the set's options after the script. An option whose name occurs in the script's text is
// meant for the script.
#include "options/misplaced_option.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsat/base/files.h"

namespace dsat::cli {
namespace {

bool is_script(const std::string& word) {
  return word.rfind('-', 0) != 0 && std::filesystem::path(word).extension() == ".py";
}

bool names(const std::string& script, std::string option) {
  if (script.find(option) != std::string::npos) return true;
  std::replace(option.begin(), option.end(), '-', '_');
  return script.find(option) != std::string::npos;
}

}  // namespace

std::optional<std::string> notice_of_misplaced_option(const OptionSet& set, const Tokens& command,
                                                      const std::filesystem::path& cwd) {
  const auto at = std::find_if(command.begin(), command.end(), is_script);
  if (at == command.end()) return std::nullopt;
  const std::string script = try_read_file(cwd / *at).bytes;
  for (auto word = at + 1; word != command.end(); ++word) {
    const std::string spelling = word->substr(0, word->find('='));
    if (spelling.rfind("--", 0) != 0) continue;
    const Option* option = set.find_exactly(spelling);
    if (option == nullptr || option->hidden) continue;
    if (option->takes == Takes::nothing || option->takes == Takes::word) continue;
    if (names(script, option->name)) continue;
    return fmt::format("'{}' stands after the command and goes to it; options of dsat-host stand before the command",
                       spelling);
  }
  return std::nullopt;
}

}  // namespace dsat::cli
