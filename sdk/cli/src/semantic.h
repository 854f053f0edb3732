// A declared option in the form of Boost.Program_options. Ownership: add_options() of Boost takes it.
#ifndef DSAT_CLI_SRC_SEMANTIC_H_
#define DSAT_CLI_SRC_SEMANTIC_H_

#include <boost/program_options/value_semantic.hpp>
#include <string>
#include <vector>

#include "dsat/cli/option.h"

namespace dsat::cli_kit {

inline const boost::program_options::value_semantic* semantic(const Option& option) {
  namespace po = boost::program_options;
  if (option.takes == Takes::nothing) return new po::untyped_value(true);
  auto* value = po::value<std::vector<std::string>>();
  value->value_name(option.value_name + (option.default_shown.empty() ? "" : " (=" + option.default_shown + ")"));
  if (option.takes == Takes::config_file || option.takes == Takes::word) value->implicit_value({}, "");
  return value;
}

}  // namespace dsat::cli_kit

#endif  // DSAT_CLI_SRC_SEMANTIC_H_
