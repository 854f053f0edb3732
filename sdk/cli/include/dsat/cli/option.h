// One option of a command line, declared once: how it is spelt, what it takes, what --help writes about it.
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

// How many tokens belong to an option.
enum class Takes {
  nothing,      // a switch
  value,        // the next token, or what follows "="
  attached,     // what follows "="; alone it means "true"
  words,        // one or more tokens, as long as they are among the option's words
  several,      // one or more tokens, up to the next option
  config_file,  // the next token if it ends in .json, or what follows "="; alone it is a switch
};

// What the text of each value has to be.
enum class ValueKind {
  text,
  path,      // not empty
  integer,   // from `low` to `high`, or one of `words`
  number,    // from `low` to `high`, an exponent allowed: 7.5e9
  size,      // of memory, at least `low` and above 0: 512MiB
  duration,  // above 0: 90s, 15m, 2h
  choice,    // one of `words`
};

// What a second occurrence does.
enum class Again {
  is_refused,
  replaces,  // the last one holds
  adds,      // all values hold, in their order
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

  // Memory that can only be large: a number below it lacks its unit.
  static constexpr int64_t kLeastMemory = 1 << 20;

  Option also(std::string spelling) &&;  // dashes included: "-mt"
  Option from(int64_t least, int64_t most = kNoLimit) &&;
  Option or_word(std::string word) &&;      // in place of an integer: "auto"
  Option by_default(std::string shown) &&;  // for --help; the program itself holds the default
  Option by_default(int64_t shown) &&;
  Option shown_as(std::string value_name) &&;  // in place of the kind's own name of a value
  Option taking(Takes takes) &&;
  Option when_repeated(Again again) &&;
  Option absent_as(std::string value) &&;  // with this value the option is not given: another program's default
  Option hide() &&;                        // known, and not in --help

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
