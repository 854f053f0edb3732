// Configurations that a training framework keeps in its package and its users name by a word: `--deepspeed zero2`.
//
// Threading: any; looks at files. Errors: dsat::Error, one line.
#ifndef DSAT_HOST_COMMAND_PRESETS_H_
#define DSAT_HOST_COMMAND_PRESETS_H_

#include <filesystem>
#include <optional>
#include <string>

#include "command/command_args.h"
#include "dsat/host/environment.h"

namespace dsat::host {

// Returns the file of the preset `name`; nullopt: the command's framework has no presets. `where`: the flag or place
// that names it, for messages. Throws Error if there is no such preset, or if the package is not found.
std::optional<std::filesystem::path> find_preset(const Argv& argv, const std::string& name, const std::string& where,
                                                 const std::filesystem::path& cwd, const Environment& environment);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_PRESETS_H_
