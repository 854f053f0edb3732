// The given options, as values of their declared kinds.
//
// Threading: plain values. Errors: dsat::Error with the option, the text and the right form.
#ifndef DSAT_CLI_VALUES_H_
#define DSAT_CLI_VALUES_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dsat/cli/grammar.h"

namespace dsat::cli_kit {

class Values {
 public:
  // `options`: from split(). Every value is checked here, even one that nobody reads. A second occurrence of an option
  // is refused if it is not allowed.
  Values(const OptionSet& set, const Tokens& options);

  // By name, without dashes. nullopt: not given. Read an option as the kind of its declaration.
  bool given(const std::string& name) const { return texts_.count(name) > 0; }
  std::optional<std::string> text(const std::string& name) const;  // the last value
  std::vector<std::string> texts(const std::string& name) const;
  std::optional<int64_t> integer(const std::string& name) const;    // nullopt also for a word in place of an integer
  std::optional<int> small_integer(const std::string& name) const;  // for options with a limit of kLargestInt
  std::optional<double> number(const std::string& name) const;
  std::optional<uint64_t> size(const std::string& name) const;  // bytes
  std::optional<std::chrono::milliseconds> duration(const std::string& name) const;

 private:
  std::map<std::string, std::vector<std::string>> texts_;
};

}  // namespace dsat::cli_kit

#endif  // DSAT_CLI_VALUES_H_
