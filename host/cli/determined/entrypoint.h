// An experiment file's entrypoint as a command of this machine.
//
// Threading: pure but for looking programs up in PATH. Errors: dsat::Error; the caller adds the place in the file.
#ifndef DSAT_CLI_DETERMINED_ENTRYPOINT_H_
#define DSAT_CLI_DETERMINED_ENTRYPOINT_H_

#include <filesystem>
#include <string>
#include <vector>

#include "dsat/error.h"
#include "dsat/host/environment.h"

namespace dsat::cli {

// Splits a string into words as a shell does, with its quotes. `NAME=value COMMAND` becomes `env NAME=value COMMAND`,
// and `exec COMMAND` becomes COMMAND. Other shell syntax (";", "$HOME", "*", "~") is refused, since dsat could not put
// a configuration into such a command. A list stays as it is.
std::vector<std::string> entrypoint_words(const Json& entrypoint);

// Removes the variables of `env NAME=value... COMMAND` from `words` and returns them, so that they become the
// experiment's variables. `env` would override the devices, the port and the PYTHONPATH of a trial.
host::Environment take_variables(std::vector<std::string>& words);

struct LaunchRequest {
  std::vector<std::string> words;
  int slots_per_trial = 1;
  std::filesystem::path cwd;             // where the command will run
  std::vector<std::string> environment;  // for PATH
};

struct LaunchCommand {
  std::vector<std::string> words;
  std::string notice;  // about a replacement; empty: none
};

// Replaces Determined's launch modules, which need its cluster. `python3 -m determined.launch.deepspeed SCRIPT...`
// becomes `deepspeed`, or `torchrun` if only that is in PATH; `determined.launch.torch_distributed` becomes `torchrun`.
// Without either, SCRIPT runs alone if a trial takes one slot. For `--trial module:Class`, SCRIPT is the harness of
// sdk/python, which trains the class. Other launch modules and Horovod are refused.
LaunchCommand replace_launch_module(const LaunchRequest& request);

}  // namespace dsat::cli

#endif  // DSAT_CLI_DETERMINED_ENTRYPOINT_H_
