// A study asked for in DeepSpeed's form: its places, the results that lie there already, and running it.
#ifndef DSAT_APP_DEEPSPEED_RUN_H_
#define DSAT_APP_DEEPSPEED_RUN_H_

#include "autotuning_options.h"
#include "console.h"
#include "deepspeed_form.h"
#include "run_study.h"

namespace dsat::cli {

// `options` are complete but for stages and places; `given` are the options as typed, of which those that change the
// search must be the same for results to be reused. Returns the exit status. Throws dsat::Error for wrong usage.
int tune_as_deepspeed(Autotuning mode, const AutotuningChoice& choice, const Values& values, const Tokens& given,
                      host::StudyOptions options, RunSettings settings, Console& console);

}  // namespace dsat::cli

#endif  // DSAT_APP_DEEPSPEED_RUN_H_
