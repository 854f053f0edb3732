// Flags of the command that follow keys of the configuration: --arg-mapping, and DeepSpeed's autotuning.arg_mappings.
#ifndef DSAT_HOST_COMMAND_ARG_MAPPINGS_H_
#define DSAT_HOST_COMMAND_ARG_MAPPINGS_H_

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "dsat/error.h"

namespace dsat::host {

using ArgMappings = std::vector<std::pair<std::string, std::string>>;  // dotted key -> flag

// Those of the configuration, with those of the options in place of the same key's. White space around a key or flag is
// dropped with a notice: DeepSpeed's own examples have it. Throws dsat::Error: no object of texts; a key
// that neither DeepSpeed nor the configuration nor the space file (or null) has.
ArgMappings merge_arg_mappings(const Json& user_config, const Json& space_file,
                               const std::filesystem::path& config_file, const ArgMappings& options,
                               std::vector<std::string>& notices);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_ARG_MAPPINGS_H_
