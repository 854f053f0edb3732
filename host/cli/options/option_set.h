// The options that one (sub-)command takes: how they are spelt, what they take, what --help says of them.
//
// Threading: plain values. An underscore in a long option stands for a hyphen (--random_seed is --random-seed).
#ifndef DSAT_CLI_OPTIONS_OPTION_SET_H_
#define DSAT_CLI_OPTIONS_OPTION_SET_H_

#include <string>
#include <string_view>
#include <vector>

namespace dsat::cli {

enum class Takes {
  nothing,   // a switch
  value,     // the next token, or what follows "="
  optional,  // what follows "="; alone it means "true"
  stages,    // one or more tokens 0 to 3
  several,   // one or more tokens, up to the next option
};

struct Option {
  std::string name;                 // long and hyphenated, without dashes
  std::vector<std::string> others;  // further spellings, dashes included: "-mt"
  Takes takes = Takes::value;
  std::string value_name;  // in --help
  std::string fallback;    // default, as --help shows it; empty: none
  std::string help;
  std::string group;  // heading in --help
  bool repeatable = false;
  bool hidden = false;  // not in --help
  std::string refusal;  // not empty: the option is known and refused with this line
};

class OptionSet {
 public:
  void add(Option option) { options_.push_back(std::move(option)); }
  void remove(std::string_view name);  // without dashes
  const std::vector<Option>& options() const { return options_; }

  // By any spelling, dashes included: "--max_trials", "-mt". nullptr: unknown.
  const Option* find(std::string_view spelling) const;

  // The spelling, dashes included, that is nearest to a wrong one; empty: none is near.
  std::string nearest(std::string_view spelling) const;

  // Names that a plugin declares and that the host or the other plugin has too: a bare "--NAME" does not say which is
  // meant.
  struct Clash {
    std::string name;                // without dashes
    std::vector<std::string> needs;  // options that, all given, leave the bare name to the host; empty: nothing does
    std::string message;
  };
  void add(Clash clash) { clashes_.push_back(std::move(clash)); }
  const Clash* clash(std::string_view spelling) const;

 private:
  std::vector<Option> options_;
  std::vector<Clash> clashes_;
};

// "--max-trials (-mt)": an option as messages name it.
std::string display(const Option& option);

}  // namespace dsat::cli

#endif  // DSAT_CLI_OPTIONS_OPTION_SET_H_
