// Flags of the command that follow keys of the configuration: --arg-mapping, and DeepSpeed's autotuning.arg_mappings.
#ifndef DSAT_HOST_COMMAND_ARG_MAPPINGS_H_
#define DSAT_HOST_COMMAND_ARG_MAPPINGS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command/command_args.h"
#include "dsat/config/space.h"
#include "dsat/error.h"

namespace dsat::host {

using ArgMappings = std::vector<std::pair<std::string, std::string>>;  // dotted key -> flag

// Returns the mappings of the configuration, replaced by those of the options for the same key. White space around a
// key or flag is dropped with a notice, because DeepSpeed's examples have it; a name without dashes becomes the flag
// --NAME, with a notice. Throws dsat::Error: not an object of texts, or a key that neither DeepSpeed nor the
// configuration nor the space file (which may be null) has.
ArgMappings merge_arg_mappings(const Json& user_config, const Json& space_file,
                               const std::filesystem::path& config_file, const ArgMappings& options,
                               std::vector<std::string>& notices);

// Throws dsat::Error if the word after a mapped flag cannot be its value: then the flag is a switch, and a trial's
// value would overwrite another argument. A key's values are those in the configuration and the space.
void check_mapped_flags(const Argv& command, const ArgMappings& mappings, const Json& user_config,
                        const config::Space& space);

// The script's own flags with numbers for the stage, the micro batch and the global batch, as Megatron's scripts have
// them beside a configuration (--zero-stage, --micro-batch-size, --global-batch-size; also with underscores). They have
// to follow the configuration, even if nobody maps them.
ArgMappings megatron_flags(const Argv& command);

// Guesses the flag of the script that sets what `key` sets: one whose name is one for the key (--batch_size, --bs) and
// whose value is `value`, or else one with another number. Empty: the command has none. Known are the keys of the micro
// batch, the accumulation and the stage.
std::string flag_for_key(const Argv& command, const std::string& key, std::optional<int64_t> value);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_ARG_MAPPINGS_H_
