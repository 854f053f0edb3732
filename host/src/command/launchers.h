// Launchers of distributed processes: which one a command starts, its own arguments, and the slots they ask for.
//
// Known: deepspeed, torchrun (python -m torch.distributed.run and .launch), accelerate launch; alone, behind env and
// the like, as a script or a module given to Python, below srun and mpirun, or behind other programs that run a command
// (`uv run`, `conda run -n NAME`, `timeout 1h`, `apptainer exec IMAGE`). Threading: pure functions.
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

// Is the word the name of a Python file?
bool is_python_script(const std::string& word);

// Does the command start Python: by its name, or with the name of a script?
bool starts_python(const Argv& argv);

// The launcher that starts the script, and its own arguments: those before the script.
struct LauncherUse {
  Launcher kind = Launcher::none;
  size_t begin = 0;                 // first token after the launcher
  size_t end = 0;                   // the script, the module, or argv.size()
  std::optional<size_t> wrapper{};  // srun, mpirun or mpiexec around it, or around a script that no launcher starts
};
LauncherUse find_launcher(const Argv& argv);

// The visibility variable that the command itself sets before its program ("env CUDA_VISIBLE_DEVICES=2,3 torchrun"),
// where that is what decides on a trial's devices; empty: there is none.
std::string own_visibility(const Argv& argv, const LauncherUse& launcher);

// The uses of an option among the launcher's own arguments; with them, their tokens.
std::vector<FlagUse> launcher_flags(const Argv& argv, const LauncherUse& launcher,
                                    std::initializer_list<std::string_view> names);
std::vector<size_t> launcher_tokens(const Argv& argv, const LauncherUse& launcher,
                                    std::initializer_list<std::string_view> names);

// The last value of such an option.
std::optional<std::string> launcher_value(const Argv& argv, const LauncherUse& launcher,
                                          std::initializer_list<std::string_view> names);

// By what the deepspeed launcher reaches several hosts: pdsh, openmpi, ...; in small letters, as it reads them.
inline constexpr const char* kPdsh = "pdsh";
std::string multinode_launcher(const Argv& argv, const LauncherUse& launcher);

// Is this switch among them?
bool launcher_switch(const Argv& argv, const LauncherUse& launcher, std::string_view name);

// Where the command has its number of processes (slots): --nproc_per_node of torchrun, --num_processes of
// accelerate, -n of srun and mpirun, else --num_gpus, --nproc_per_node or --ranks of whatever it starts. The deepspeed
// launcher's own flags are read apart.
std::optional<FlagUse> slots_flag(const Argv& argv, const LauncherUse& launcher);

// How many those are in all, nodes counted; nullopt: there is no such number.
std::optional<int> command_slots(const Argv& argv, const LauncherUse& launcher);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_LAUNCHERS_H_
