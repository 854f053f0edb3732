// A study in DeepSpeed's form: its folders, earlier results in them, and the run.
//
// Threading: called on the main thread. Errors: dsat::Error for wrong usage.
#ifndef DSAT_CLI_COMMANDS_TUNE_AS_DEEPSPEED_H_
#define DSAT_CLI_COMMANDS_TUNE_AS_DEEPSPEED_H_

#include "commands/run_study.h"
#include "deepspeed/apply_autotuning.h"
#include "deepspeed/command_line.h"
#include "terminal/console.h"

namespace dsat::cli {

// `options` lack only the stages and folders. `given` are the options as typed: earlier results are used again if the
// options that change the search are equal. Returns the exit status.
int tune_as_deepspeed(Autotuning mode, const AutotuningChoice& choice, const Values& values, const Tokens& given,
                      host::StudyOptions options, RunSettings settings, Console& console);

// Runs a study. If its run directory shows that it has DeepSpeed's form, DeepSpeed's files are written, too, and the
// training with the best configuration follows if `--autotuning run` was given. Returns the exit status.
int run_in_its_form(host::Study& study, RunSettings settings, Console& console);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_TUNE_AS_DEEPSPEED_H_
