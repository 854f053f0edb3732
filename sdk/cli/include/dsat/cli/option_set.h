// The options that one command takes, found by their spellings.
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

  // By any spelling, dashes included; "-mt" finds --max-trials. An underscore in a long one stands for a hyphen:
  // "--max_trials". nullptr: unknown.
  const Option* find(std::string_view spelling) const;
  // By a spelling to the letter.
  const Option* find_exactly(std::string_view spelling) const;

  // The spelling, dashes included, that is nearest to a wrong one; empty: none is near.
  std::string nearest(std::string_view spelling) const;

  // A name that two owners declare (a program and its plugin, or two plugins). A bare "--NAME" does not say which is
  // meant.
  struct Clash {
    std::string name;                // without dashes
    std::vector<std::string> needs;  // options that, all given, leave the bare name to the program; empty: nothing does
    std::string message;             // for the person who typed the bare name
  };
  void add(Clash clash) { clashes_.push_back(std::move(clash)); }
  const Clash* clash(std::string_view spelling) const;

 private:
  std::vector<Option> options_;
  std::vector<Clash> clashes_;
};

}  // namespace dsat::cli_kit

#endif  // DSAT_CLI_OPTION_SET_H_
