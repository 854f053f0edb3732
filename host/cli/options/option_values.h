// The options as given on the command line, read as what they mean.
//
// Threading: plain values. Errors: dsat::Error that names the option, the text and what would be right.
#ifndef DSAT_CLI_OPTIONS_OPTION_VALUES_H_
#define DSAT_CLI_OPTIONS_OPTION_VALUES_H_

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "options/option_set.h"
#include "options/split_arguments.h"

namespace dsat::cli {

class Values {
 public:
  // `options` as split() made them. An option given twice that is not repeatable is an Error.
  Values(const OptionSet& set, const Tokens& options);

  bool given(const std::string& name) const { return texts_.count(name) > 0; }
  std::optional<std::string> text(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name) const;
  std::optional<int64_t> integer(const std::string& name, int64_t min,
                                 int64_t max = std::numeric_limits<int64_t>::max()) const;
  std::optional<int> small_integer(const std::string& name, int min, int max = std::numeric_limits<int>::max()) const;
  std::optional<double> number(const std::string& name, double min) const;           // "7.5e9" too
  std::optional<uint64_t> size(const std::string& name) const;                       // bytes, at least 1
  std::optional<std::chrono::milliseconds> duration(const std::string& name) const;  // longer than 0
  // One of `choices`.
  std::optional<std::string> choice(const std::string& name, const std::vector<std::string>& choices) const;

 private:
  [[noreturn]] void refuse(const std::string& name, const std::string& text, const std::string& wanted) const;
  std::map<std::string, std::vector<std::string>> texts_;
  std::map<std::string, std::string> displays_;
};

// The option groups of --help, `columns` wide.
std::string help_text(const OptionSet& set, unsigned columns);

}  // namespace dsat::cli

#endif  // DSAT_CLI_OPTIONS_OPTION_VALUES_H_
