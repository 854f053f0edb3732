// The script of a plain command `python train.py ...` that is not there.
//
// Purpose: a trial would find out, after others have run. Threading: looks whether a file exists. Errors: none.
#ifndef DSAT_HOST_COMMAND_MISSING_SCRIPT_H_
#define DSAT_HOST_COMMAND_MISSING_SCRIPT_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "command/command_args.h"

namespace dsat::host {

// The word that names it, where the program is a Python and its first word that is no option ends in .py; nullopt: it
// is there, or it is not known which word names the script. `cwd`: the folder that trials run in, or are given a copy
// of; `includes`: what that copy has beside it.
std::optional<std::string> missing_script(const Argv& argv, const std::filesystem::path& cwd,
                                          const std::vector<std::filesystem::path>& includes);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_MISSING_SCRIPT_H_
