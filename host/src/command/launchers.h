// Finds the launcher of distributed processes in a command, its own arguments, and its number of slots.
//
// Known are deepspeed, torchrun (python -m torch.distributed.run and .launch) and accelerate launch: alone, after env
// and the like, as a script or module given to Python, below srun and mpirun, or after other programs that run a
// command (`uv run`, `conda run -n NAME`, `timeout 1h`, `apptainer exec IMAGE`). Threading: pure functions.
#ifndef DSAT_HOST_COMMAND_LAUNCHERS_H_
#define DSAT_HOST_COMMAND_LAUNCHERS_H_

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command/command_args.h"

namespace dsat::host {

enum class Launcher { none, deepspeed, torchrun, accelerate };

bool is_python_script(const std::string& word);

// Whether the command starts Python: by its name, or by the name of a script.
bool starts_python(const Argv& argv);

// The launcher of the script, and the place of its own arguments before the script.
struct LauncherUse {
  Launcher kind = Launcher::none;
  size_t begin = 0;                 // first token after the launcher
  size_t end = 0;                   // the script, the module, or argv.size()
  std::optional<size_t> wrapper{};  // srun, mpirun or mpiexec around the launcher, or around a script without one
  bool mixed = false;               // the script's arguments stand between the launcher's own (own_launchers.h)
  size_t script() const { return mixed ? begin : end; }  // the first token that may be an argument of the script
};
LauncherUse find_launcher(const Argv& argv);

// Returns the visibility variable that the command sets before its program ("env CUDA_VISIBLE_DEVICES=2,3 torchrun"),
// if it decides a trial's devices; empty: none.
std::string own_visibility(const Argv& argv, const LauncherUse& launcher);

// Return the uses of an option among the launcher's own arguments, and the tokens of these uses.
std::vector<FlagUse> launcher_flags(const Argv& argv, const LauncherUse& launcher,
                                    std::initializer_list<std::string_view> names);
std::vector<size_t> launcher_tokens(const Argv& argv, const LauncherUse& launcher,
                                    std::initializer_list<std::string_view> names);

// Returns the last value of the option.
std::optional<std::string> launcher_value(const Argv& argv, const LauncherUse& launcher,
                                          std::initializer_list<std::string_view> names);

// How the deepspeed launcher reaches several hosts: pdsh, openmpi, ...; in lower case, as the launcher reads it.
inline constexpr const char* kPdsh = "pdsh";
std::string multinode_launcher(const Argv& argv, const LauncherUse& launcher);

// Whether the launcher's own arguments have this switch.
bool launcher_switch(const Argv& argv, const LauncherUse& launcher, std::string_view name);

// Returns the place of the number of processes (slots): --nproc_per_node of torchrun, --num_processes of accelerate, -n
// of srun and mpirun, otherwise --num_gpus, --nproc_per_node or --ranks of the command. The deepspeed launcher's flags
// are handled elsewhere.
std::optional<FlagUse> slots_flag(const Argv& argv, const LauncherUse& launcher);

// Returns the number of processes on all nodes; nullopt: the command has no such number.
std::optional<int> command_slots(const Argv& argv, const LauncherUse& launcher);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_LAUNCHERS_H_
