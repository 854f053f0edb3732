// Reading a training command's arguments: flags and their values, and which launcher starts it.
//
// Threading: pure functions.
#ifndef DSAT_HOST_COMMAND_ARGS_H_
#define DSAT_HOST_COMMAND_ARGS_H_

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

enum class Launcher { none, deepspeed, torchrun };

// The launcher of distributed processes at the head of a command, and its own arguments: those before the script.
struct LauncherUse {
  Launcher kind = Launcher::none;
  size_t begin = 0;  // first token after the launcher
  size_t end = 0;    // the script, the module, or argv.size()
};
LauncherUse find_launcher(const Argv& argv);

// Tokens of the launcher's own arguments that belong to one of `names`, their values included.
std::vector<size_t> launcher_tokens(const Argv& argv, const LauncherUse& launcher,
                                    std::initializer_list<std::string_view> names);

// How many processes (slots) the command itself asks for: --num_gpus, --nproc_per_node, --nproc-per-node, --ranks, -n
// of srun and mpirun. nullopt: it does not say, or not as a number.
std::optional<int> command_slots(const Argv& argv);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_ARGS_H_
