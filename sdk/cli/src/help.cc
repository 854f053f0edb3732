// Boost.Program_options prints each group in two columns. Hidden options and groups without visible ones are left out.
#include "dsat/cli/help.h"

#include <algorithm>
#include <boost/program_options/options_description.hpp>
#include <sstream>

#include "semantic.h"

namespace dsat::cli_kit {
namespace {

namespace po = boost::program_options;

// Other spellings stand in the text, because Boost has no short names of several letters.
std::string description(const Option& option) {
  std::string spellings;
  for (const std::string& alias : option.aliases) {
    if (alias.rfind("--", 0) != 0) spellings += (spellings.empty() ? "" : ", ") + alias;
  }
  return spellings.empty() ? option.help : spellings + ": " + option.help;
}

po::options_description describe(const OptionSet& set, const std::string& group, unsigned columns) {
  po::options_description options(group, columns, columns / 2);
  for (const Option& option : set.options()) {
    if (option.group != group || option.hidden) continue;
    options.add_options()(option.name.c_str(), semantic(option), description(option).c_str());
  }
  return options;
}

// Boost leaves a blank at the end of a broken line.
std::string without_trailing_blanks(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  }
  return result;
}

}  // namespace

std::string help_text(const OptionSet& set, unsigned columns) {
  std::vector<std::string> groups;
  for (const Option& option : set.options()) {
    const bool known = std::find(groups.begin(), groups.end(), option.group) != groups.end();
    if (!option.hidden && !known) groups.push_back(option.group);
  }
  std::ostringstream out;
  for (const std::string& group : groups) out << describe(set, group, columns) << "\n";
  return without_trailing_blanks(out.str());
}

}  // namespace dsat::cli_kit
