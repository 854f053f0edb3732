// An experiment file's entrypoint as a command of this machine.
//
// Threading: pure but for looking programs up in PATH. Errors: dsat::Error without a place, for the caller to put one
// before.
#ifndef DSAT_CLI_DETERMINED_ENTRYPOINT_H_
#define DSAT_CLI_DETERMINED_ENTRYPOINT_H_

#include <filesystem>
#include <string>
#include <vector>

#include "dsat/error.h"
#include "dsat/host/environment.h"

namespace dsat::cli {

// A string is cut into words as a shell does, quotes and all; `NAME=value COMMAND` becomes `env NAME=value COMMAND`,
// and `exec COMMAND` is COMMAND. Shell syntax beyond that (";", "$HOME", "*", "~") is refused, since no configuration
// could be put into it. A list is taken as it is.
std::vector<std::string> entrypoint_words(const Json& entrypoint);

// Takes the variables of `env NAME=value... COMMAND` out of `words`, for the experiment's own: a trial's devices, port
// and folders of Python go over those or are added to them, where `env` would replace them.
host::Environment take_variables(std::vector<std::string>& words);

struct LaunchRequest {
  std::vector<std::string> words;
  int slots_per_trial = 1;
  std::filesystem::path cwd;             // where the command will run
  std::vector<std::string> environment;  // for PATH
};

struct LaunchCommand {
  std::vector<std::string> words;
  std::string notice;  // what was put in place of what; empty: nothing worth a line
};

// With Determined's launch modules replaced, which need its cluster: `python3 -m determined.launch.deepspeed SCRIPT...`
// becomes `deepspeed`, else `torchrun`, whichever is in PATH; `determined.launch.torch_distributed` becomes `torchrun`.
// Without either SCRIPT runs by itself if a trial takes one slot. For `--trial module:Class` SCRIPT is the harness of
// sdk/python, which trains the class. Other launch modules, and Horovod, are refused.
LaunchCommand replace_launch_module(const LaunchRequest& request);

}  // namespace dsat::cli

#endif  // DSAT_CLI_DETERMINED_ENTRYPOINT_H_
