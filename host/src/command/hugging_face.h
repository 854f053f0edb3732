// Hugging Face's Trainer compares its batch sizes with the configuration's and refuses a difference, so both are
// rewritten together. Its values for "auto" are read from its flags. Threading: pure but for
// runs_trainer.
#ifndef DSAT_HOST_COMMAND_HUGGING_FACE_H_
#define DSAT_HOST_COMMAND_HUGGING_FACE_H_

#include <filesystem>

#include "command/arg_mappings.h"
#include "command/command_args.h"
#include "dsat/config/batch.h"
#include "dsat/error.h"

namespace dsat::host {

// Converts a configuration value to an argument that replaces `given`; nullopt: there is nothing to pass ("auto" for
// example). A truth value keeps the spelling of `given`; without one it has Python's spelling, as DeepSpeed writes it.
std::optional<std::string> as_argument(const Json* value, const std::string& given = "");

enum class Trainer {
  other,
  batch_flags,   // takes one or both of Hugging Face's batch flags; perhaps a user's script that copied them
  hugging_face,  // its TrainingArguments: has both flags, with defaults
};

// Recognises the Trainer by the arguments from token `script` on. --deepspeed with a file is Hugging Face's form, but
// it is certain only together with a batch flag or an option that only Hugging Face has.
Trainer find_trainer(const Argv& argv, size_t script, bool deepspeed_takes_file);

// Whether the program at token `script` takes the Trainer's arguments: trl's commands; a script with Hugging Face's
// parser, whatever its options; a program that cannot be read, if it has an option that only the Trainer has. A script
// with a parser of its own does not take the flags, even if it has an --output_dir. Reads the script.
bool runs_trainer(const Argv& argv, size_t script, const std::filesystem::path& cwd);

// The two batch flags, in any spelling.
bool is_batch_flag(const std::string& flag);
std::vector<FlagUse> batch_flags(const Argv& argv);

// Fills in batch sizes that the configuration leaves open ("auto" or absent) from flags. If `hugging_face`, these are
// the Trainer's two batch flags, unless they contradict a train batch; in any case, flags that are mapped to the keys
// of batch sizes.
config::GivenBatchSizes with_batch_flags(const Argv& argv, bool hugging_face, const ArgMappings& mappings,
                                         config::GivenBatchSizes given);

// Sets the Trainer's default, 8, for a micro batch that the configuration leaves to its flags ("auto") and no flag
// gives.
inline constexpr int64_t kTrainersMicroBatch = 8;
Json with_default_batch(const Argv& argv, Json config);

// Returns "bf16" or "fp16" by the Trainer's --bf16 and --fp16, or else by accelerate's --mixed_precision; "": none of
// them.
std::string precision_of_flags(const Argv& argv);
// Returns the configuration for the cost model: if it leaves the precision open ("auto" or no section), this precision
// is set. An empty one changes nothing.
Json with_precision(Json config, const std::string& precision);

// Whether a batch size is "auto", which only Hugging Face's Trainer and accelerate fill in.
bool has_auto_batch_size(const Json& config);

// Writes the configuration's micro batch and accumulation into the flags. Adds a missing flag if its default is another
// value (8 samples per device, no accumulation), unless another flag is mapped to the key, or the program is no script.
void follow_configuration(Argv& argv, size_t script, Trainer trainer, const Json& config, const ArgMappings& mappings);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_HUGGING_FACE_H_
