// DeepSpeed's own command line: `--autotuning tune|run [launcher's options] SCRIPT ARGS...` in place of
// `deepspeed --autotuning ...`. It becomes the command `deepspeed [launcher's options] SCRIPT ARGS...`, which is tuned
// as any other.
//
// Threading: pure functions but for looking whether files exist. Errors: dsat::Error that says what to type.
#ifndef DSAT_CLI_DEEPSPEED_COMMAND_LINE_H_
#define DSAT_CLI_DEEPSPEED_COMMAND_LINE_H_

#include <filesystem>
#include <optional>

#include "options/kit.h"

namespace dsat::cli {

enum class Autotuning {
  tune,  // write the best configuration
  run,   // then train with it
};

// Adds --autotuning and the options of the deepspeed launcher that dsat-host does not have itself. dsat-host's own
// options place the trials, so the launcher's command needs none for that.
void add_deepspeed_options(OptionSet& set);

// nullopt: the command line does not have this form. Options of the launcher are refused without --autotuning.
std::optional<Autotuning> autotuning_of(const Values& values);

// The launcher's command for `rest` = SCRIPT ARGS... Refuses an empty `rest`, a missing script, and a --launcher that
// DeepSpeed does not have.
Tokens deepspeed_command(const Values& values, const Tokens& rest, const std::filesystem::path& cwd);

}  // namespace dsat::cli

#endif  // DSAT_CLI_DEEPSPEED_COMMAND_LINE_H_
