// Programs of training frameworks that start a launcher themselves.
//
// `trl sft` and `axolotl train` start accelerate (or torchrun) in a process and take its options between their own.
// `swift sft` and `llamafactory-cli train` start torchrun and read its size and port from variables. Seen in trl
// 1.10.0.dev0, axolotl 0.18.0, ms-swift 4.6.0.dev0, LLaMA-Factory 0.9.6.dev0. Threading: pure functions.
#ifndef DSAT_HOST_COMMAND_OWN_LAUNCHERS_H_
#define DSAT_HOST_COMMAND_OWN_LAUNCHERS_H_

#include <optional>
#include <string>
#include <string_view>

#include "command/launchers.h"
#include "dsat/host/environment.h"

namespace dsat::host {

enum class Framework { none, trl, axolotl, swift, llama_factory };
// Returns the framework whose program the command starts, also below wrappers and as `python -m`.
Framework find_framework(const Argv& argv);

// Returns the launcher that the program at token i starts, with all words after it as its options; kind none: another
// program.
LauncherUse mixed_launcher(const Argv& argv, size_t i);

// Returns the word NAME=value before a program that reads torchrun's variables; nullopt: there is none.
std::optional<FlagUse> torchrun_variable(const Argv& argv, std::string_view name);

// Returns the number of processes that such a program starts by the variables around the command, and that its own
// words do not give; nullopt: all devices, or another program.
std::optional<int> processes_by_variables(const Argv& argv, const Environment& environment);

// Returns NNODES of such a program, from before it or around it, if it is no 1; empty: one node, or another program.
std::string nodes_by_variable(const Argv& argv, const Environment& environment);

// Gives such a program the trial's port in place of its own, and LLaMA-Factory, which trains without torchrun on a
// single device, the variable that makes it start torchrun. `port`: 0 for the best command, which keeps its own.
void apply_torchrun_variables(Argv& argv, uint16_t port, const Environment& environment);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_OWN_LAUNCHERS_H_
