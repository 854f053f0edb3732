// Hugging Face's Trainer on a command line: it compares its batch sizes with the configuration's and refuses a
// difference, so they are rewritten together. What it fills in for "auto" is read from its flags. Threading: pure
// functions.
#ifndef DSAT_HOST_COMMAND_HUGGING_FACE_H_
#define DSAT_HOST_COMMAND_HUGGING_FACE_H_

#include "command/arg_mappings.h"
#include "command/command_args.h"
#include "dsat/config/batch.h"
#include "dsat/error.h"

namespace dsat::host {

// A configuration value as a command-line argument in place of `given`; nullopt: there is nothing to pass on, "auto"
// least of all. A truth value has the spelling of the one that it replaces, else Python's, as DeepSpeed writes it.
std::optional<std::string> as_argument(const Json* value, const std::string& given = "");

enum class Trainer {
  other,
  batch_flags,  // takes Hugging Face's batch flags, though perhaps not both: a script of the user's own may have copied
  hugging_face,  // its TrainingArguments: both flags are there, and have defaults
};

// What the script's arguments, from token `script` on, look like. --deepspeed with a file is Hugging Face's form, but
// for certain only beside one of its batch flags or an option that is its alone.
Trainer find_trainer(const Argv& argv, size_t script, bool deepspeed_takes_file);

// Its two batch flags, in any spelling.
bool is_batch_flag(const std::string& flag);
std::vector<FlagUse> batch_flags(const Argv& argv);

// The numbers of flags in place of those that a configuration leaves open ("auto", or absent): of the Trainer's two
// batch flags, which it fills in so, if `hugging_face` (but not where they contradict a train batch); and of those that
// are mapped to the batch sizes' keys.
config::GivenBatchSizes with_batch_flags(const Argv& argv, bool hugging_face, const ArgMappings& mappings,
                                         config::GivenBatchSizes given);

// "bf16" or "fp16": what the Trainer's --bf16 and --fp16 ask for, else accelerate's --mixed_precision. Empty: the
// command shows none.
std::string precision_of_flags(const Argv& argv);
// The configuration as the cost model is to read it: where it leaves the precision open ("auto", or no section at all),
// this one. An empty one changes nothing.
Json with_precision(Json config, const std::string& precision);

// Writes the configuration's micro batch and accumulation into the flags, and adds those whose absence would mean
// something else: 8 samples a device, no accumulation.
void follow_configuration(Argv& argv, size_t script, Trainer trainer, const Json& config);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_HUGGING_FACE_H_
