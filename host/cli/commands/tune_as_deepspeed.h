// A study asked for in DeepSpeed's form: its places, the results that lie there already, and running it.
//
// Threading: called on the main thread. Errors: dsat::Error for wrong usage.
#ifndef DSAT_CLI_COMMANDS_TUNE_AS_DEEPSPEED_H_
#define DSAT_CLI_COMMANDS_TUNE_AS_DEEPSPEED_H_

#include "commands/run_study.h"
#include "deepspeed/apply_autotuning.h"
#include "deepspeed/command_line.h"
#include "terminal/console.h"

namespace dsat::cli {

// `options` are complete but for stages and places; `given` are the options as typed, of which those that change the
// search must be the same for results to be reused. Returns the exit status.
int tune_as_deepspeed(Autotuning mode, const AutotuningChoice& choice, const Values& values, const Tokens& given,
                      host::StudyOptions options, RunSettings settings, Console& console);

// Runs a study that may be of DeepSpeed's form, as its run directory says: then DeepSpeed's files are written, too, and
// the training with the best configuration follows where the command line asked for it. Returns the exit status.
int run_in_its_form(host::Study& study, RunSettings settings, Console& console);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_TUNE_AS_DEEPSPEED_H_
