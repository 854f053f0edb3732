// The options that were given, as values of their declared kinds.
//
// Threading: plain values. Errors: dsat::Error that names the option, the text and what would be right.
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
  // `options` as split() made them. Every value is checked here, whether or not anybody reads it. An option that is
  // given twice and may not be is refused.
  Values(const OptionSet& set, const Tokens& options);

  // By name, without dashes. nullopt: not given. An option must be read as the kind that it was declared with.
  bool given(const std::string& name) const { return texts_.count(name) > 0; }
  std::optional<std::string> text(const std::string& name) const;  // the last one, where a later one replaces it
  std::vector<std::string> texts(const std::string& name) const;
  std::optional<int64_t> integer(const std::string& name) const;    // a word in place of an integer is nullopt
  std::optional<int> small_integer(const std::string& name) const;  // declared with at most kLargestInt
  std::optional<double> number(const std::string& name) const;
  std::optional<uint64_t> size(const std::string& name) const;  // bytes
  std::optional<std::chrono::milliseconds> duration(const std::string& name) const;

 private:
  std::map<std::string, std::vector<std::string>> texts_;
};

}  // namespace dsat::cli_kit

#endif  // DSAT_CLI_VALUES_H_
