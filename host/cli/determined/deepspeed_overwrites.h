// DeepSpeed's keys as people write them among the hyperparameters of an experiment.
// Threading: pure function. Errors: dsat::Error, which begins with the key.
#ifndef DSAT_HOST_CLI_DETERMINED_DEEPSPEED_OVERWRITES_H_
#define DSAT_HOST_CLI_DETERMINED_DEEPSPEED_OVERWRITES_H_

#include "dsat/config/json.h"

namespace dsat::cli {

// Returns the overwrites in DeepSpeed's form. A dotted key ("zero_optimization.stage: 2") becomes a section. TYPE of
// the optimizer or the scheduler becomes `type`: among hyperparameters `type` would be Determined's own.
Json as_deepspeed_keys(const Json& overwrites);

}  // namespace dsat::cli

#endif  // DSAT_HOST_CLI_DETERMINED_DEEPSPEED_OVERWRITES_H_
