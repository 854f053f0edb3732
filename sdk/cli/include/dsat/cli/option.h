// One option of a command line: its spellings, its values, its text in --help.
//
//   Option::integer("max-trials", "trials to run at most").from(1).also("-mt").by_default(50)
//
// Threading: plain values.
#ifndef DSAT_CLI_OPTION_H_
#define DSAT_CLI_OPTION_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace dsat::cli_kit {

// The number of tokens that belong to an option.
enum class Takes {
  nothing,      // a switch
  value,        // the next token, or the text after "="
  attached,     // the text after "="; without "=" the value is "true"
  words,        // one or more tokens, while they are among the option's words
  several,      // one or more tokens, up to the next option
  word,         // the next token if it is one of the option's words, or the text after "="; otherwise a switch
  config_file,  // the next token if it ends in .json, or the text after "="; otherwise a switch
};

// The kind of each value.
enum class ValueKind {
  text,
  path,      // not empty
  integer,   // from `low` to `high`, or one of `words`
  number,    // from `low` to `high`, an exponent allowed: 7.5e9
  size,      // memory of at least `low` and more than 0: 512MiB
  duration,  // above 0: 90s, 15m, 2h
  choice,    // one of `words`
};

// The meaning of a second occurrence.
enum class Again {
  is_refused,
  replaces,  // the last value counts
  adds,      // all values count, in their order
};

struct Option {
  static Option toggle(std::string name, std::string help);
  static Option text(std::string name, std::string value_name, std::string help);
  static Option path(std::string name, std::string value_name, std::string help);
  static Option integer(std::string name, std::string help);
  static Option number(std::string name, std::string help);
  static Option size(std::string name, std::string help);
  static Option duration(std::string name, std::string help);
  static Option choice(std::string name, std::vector<std::string> words, std::string help);

  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kLargestInt = std::numeric_limits<int>::max();

  // A smaller number of bytes lacks its unit, for a value that can only be large.
  static constexpr int64_t kLeastMemory = 1 << 20;

  Option also(std::string spelling) &&;  // dashes included: "-mt"
  Option from(int64_t least, int64_t most = kNoLimit) &&;
  Option or_word(std::string word) &&;      // in place of an integer: "auto"
  Option by_default(std::string shown) &&;  // for --help; the program itself holds the default
  Option by_default(int64_t shown) &&;
  Option shown_as(std::string value_name) &&;  // the name of the value in --help
  Option taking(Takes takes) &&;
  Option when_repeated(Again again) &&;
  Option absent_as(std::string value) &&;  // this value, the default of another program, counts as not given
  Option hide() &&;                        // accepted, but not in --help

  bool has_word(const std::string& text) const;  // is `text` one of `words`?

  std::string name;                  // long, without dashes
  std::vector<std::string> aliases;  // further spellings, dashes included
  Takes takes = Takes::value;
  ValueKind kind = ValueKind::text;
  int64_t low = std::numeric_limits<int64_t>::min(), high = kNoLimit;
  std::vector<std::string> words, absent_values;
  Again again = Again::is_refused;
  std::string value_name;     // in --help: N, FILE, keep|copy
  std::string default_shown;  // in --help; empty: none
  std::string help;
  std::string group;  // heading in --help
  bool hidden = false;
};

// "--max-trials (-mt)": an option as messages name it.
std::string display(const Option& option);

}  // namespace dsat::cli_kit

#endif  // DSAT_CLI_OPTION_H_
