// Flags of the command that follow keys of the configuration: --arg-mapping, and DeepSpeed's autotuning.arg_mappings.
#ifndef DSAT_HOST_COMMAND_ARG_MAPPINGS_H_
#define DSAT_HOST_COMMAND_ARG_MAPPINGS_H_

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "command/command_args.h"
#include "dsat/config/space.h"
#include "dsat/error.h"

namespace dsat::host {

using ArgMappings = std::vector<std::pair<std::string, std::string>>;  // dotted key -> flag

// Those of the configuration, with those of the options in place of the same key's. White space around a key or flag is
// dropped with a notice, since DeepSpeed's own examples have it; a name without dashes is the flag --NAME, with a
// notice. Throws dsat::Error: no object of texts; a key that neither DeepSpeed nor the configuration nor the space file
// (or null) has.
ArgMappings merge_arg_mappings(const Json& user_config, const Json& space_file,
                               const std::filesystem::path& config_file, const ArgMappings& options,
                               std::vector<std::string>& notices);

// Throws dsat::Error where the word behind a mapped flag cannot be its value: the flag is a switch then, and a trial's
// value would overwrite another argument. The values of a key are the configuration's and the space's.
void check_mapped_flags(const Argv& command, const ArgMappings& mappings, const Json& user_config,
                        const config::Space& space);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_ARG_MAPPINGS_H_
