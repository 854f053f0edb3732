// Reading a training command's arguments: flags and their values.
//
// Threading: pure functions.
#ifndef DSAT_HOST_COMMAND_COMMAND_ARGS_H_
#define DSAT_HOST_COMMAND_COMMAND_ARGS_H_

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dsat::host {

using Argv = std::vector<std::string>;

// Where a flag's value stands: "--flag VALUE" or "--flag=VALUE".
struct FlagUse {
  size_t flag = 0;         // index of the token with the flag
  size_t value = 0;        // index of the token with the value; argv.size() when it is missing
  size_t value_begin = 0;  // where in that token the value begins
  std::string read(const Argv& argv) const { return argv[value].substr(value_begin); }
  void write(Argv& argv, const std::string& text) const { argv[value] = argv[value].substr(0, value_begin) + text; }
};

// Every use of a flag that takes a value, in order, whichever of `names` it goes by.
std::vector<FlagUse> find_flag(const Argv& argv, std::initializer_list<std::string_view> names);
std::vector<FlagUse> find_flag(const Argv& argv, const std::string& name);

// A flag as Python's argument parsers know it: "--batch-size" is "--batch_size".
std::string with_underscores(std::string flag);
// Uses of a flag, written with dashes or with underscores.
std::vector<FlagUse> find_flag_in_any_spelling(const Argv& argv, const std::string& name);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_COMMAND_ARGS_H_
