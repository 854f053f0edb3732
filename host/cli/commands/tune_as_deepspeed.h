// A study asked for in DeepSpeed's form: its places, the results that lie there already, and running it.
#ifndef DSAT_CLI_COMMANDS_TUNE_AS_DEEPSPEED_H_
#define DSAT_CLI_COMMANDS_TUNE_AS_DEEPSPEED_H_

#include "commands/run_study.h"
#include "deepspeed/apply_autotuning.h"
#include "deepspeed/launcher_options.h"
#include "terminal/console.h"

namespace dsat::cli {

// `options` are complete but for stages and places; `given` are the options as typed, of which those that change the
// search must be the same for results to be reused. Returns the exit status. Throws dsat::Error for wrong usage.
int tune_as_deepspeed(Autotuning mode, const AutotuningChoice& choice, const Values& values, const Tokens& given,
                      host::StudyOptions options, RunSettings settings, Console& console);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_TUNE_AS_DEEPSPEED_H_
