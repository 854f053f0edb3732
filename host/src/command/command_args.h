// Reads flags and their values in a training command.
// Threading: pure functions.
#ifndef DSAT_HOST_COMMAND_COMMAND_ARGS_H_
#define DSAT_HOST_COMMAND_COMMAND_ARGS_H_

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace dsat::host {

using Argv = std::vector<std::string>;

// The place of a flag and its value: "--flag VALUE" or "--flag=VALUE".
struct FlagUse {
  size_t flag = 0;         // index of the token with the flag
  size_t value = 0;        // index of the token with the value; argv.size(): it is missing
  size_t value_begin = 0;  // where the value begins in that token
  std::string read(const Argv& argv) const { return argv[value].substr(value_begin); }
  void write(Argv& argv, const std::string& text) const { argv[value] = argv[value].substr(0, value_begin) + text; }
};

// Returns every use of a flag with a value, under any of `names`, in order.
std::vector<FlagUse> find_flag(const Argv& argv, std::initializer_list<std::string_view> names);
std::vector<FlagUse> find_flag(const Argv& argv, const std::string& name);

// Python's argument parsers treat "--batch-size" and "--batch_size" as the same flag.
std::string with_underscores(std::string flag);
// Returns the uses of a flag, written with dashes or with underscores.
std::vector<FlagUse> find_flag_in_any_spelling(const Argv& argv, const std::string& name);

// Returns the uses of a mapping's flag: of --FLAG in any spelling or, if it ends in "=", of words as OmegaConf and
// Hydra take them: NAME=value, +NAME=value, ++NAME=value.
std::vector<FlagUse> find_mapped(const Argv& argv, const std::string& flag);
bool is_word_name(const std::string& flag);  // NAME=

bool is_yaml_name(const std::string& word);  // ends in .yaml or .yml

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_COMMAND_ARGS_H_
