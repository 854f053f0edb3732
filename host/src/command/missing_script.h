// Finds out whether the script of a command `python train.py ...` or `deepspeed train.py ...` is missing.
//
// Without this check a trial would fail after others have run. Threading: looks whether a file exists. Errors: none.
#ifndef DSAT_HOST_COMMAND_MISSING_SCRIPT_H_
#define DSAT_HOST_COMMAND_MISSING_SCRIPT_H_

#include <filesystem>
#include <string>
#include <vector>

#include "command/command_args.h"

namespace dsat::host {

// Returns what is wrong with the script's name, in words: the program is Python or a launcher, the first word behind
// its options ends in .py, and there is no such file; or the word is another file, and the script is behind it. Empty:
// nothing is. `cwd`: the folder in which trials run, or which is copied for them; `includes`: files that are copied
// beside it.
std::string missing_script(const Argv& argv, const std::filesystem::path& cwd,
                           const std::vector<std::filesystem::path>& includes);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_MISSING_SCRIPT_H_
