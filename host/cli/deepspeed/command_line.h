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
  tune,  // hand back the best configuration
  run,   // and train with it
};

// Adds --autotuning and those options of the deepspeed launcher that dsat-host does not have for all its forms; what it
// has says how trials are placed, and the command need not.
void add_deepspeed_options(OptionSet& set);

// nullopt: the command line is not of this form. The launcher's options without --autotuning are refused.
std::optional<Autotuning> autotuning_of(const Values& values);

// The launcher's command for `rest` = SCRIPT ARGS... Refuses none at all, a script that is not there, and a --launcher
// that DeepSpeed does not have.
Tokens deepspeed_command(const Values& values, const Tokens& rest, const std::filesystem::path& cwd);

}  // namespace dsat::cli

#endif  // DSAT_CLI_DEEPSPEED_COMMAND_LINE_H_
