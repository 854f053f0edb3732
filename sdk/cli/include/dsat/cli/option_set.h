// The options of one command, found by their spellings.
//
// Threading: plain values.
#ifndef DSAT_CLI_OPTION_SET_H_
#define DSAT_CLI_OPTION_SET_H_

#include <string>
#include <string_view>
#include <vector>

#include "dsat/cli/option.h"

namespace dsat::cli_kit {

class OptionSet {
 public:
  void add(Option option) { options_.push_back(std::move(option)); }
  // Adds options under a heading of --help.
  void add_group(const std::string& heading, std::vector<Option> options);
  void remove(std::string_view name);  // without dashes
  const std::vector<Option>& options() const { return options_; }

  // By any spelling with its dashes; "-mt" finds --max-trials. "--max_trials" counts as "--max-trials". nullptr:
  // unknown.
  const Option* find(std::string_view spelling) const;
  // By a spelling to the letter.
  const Option* find_exactly(std::string_view spelling) const;

  // The spelling, with its dashes, nearest to a wrong one; empty: none is near.
  std::string nearest(std::string_view spelling) const;

  // A name that two owners declare (a program and its plugin, or two plugins), so that a bare "--NAME" is ambiguous.
  struct Clash {
    std::string name;                // without dashes
    std::vector<std::string> needs;  // if all these options are given, the bare name is the program's; empty: never
    std::string message;             // for the user who typed the bare name
  };
  void add(Clash clash) { clashes_.push_back(std::move(clash)); }
  const Clash* clash(std::string_view spelling) const;

 private:
  std::vector<Option> options_;
  std::vector<Clash> clashes_;
};

}  // namespace dsat::cli_kit

#endif  // DSAT_CLI_OPTION_SET_H_
