// Applies an experiment file of Determined to a study.
//
// An option on the command line beats the file. A key that the file leaves out keeps dsat's default. Threading: pure
// functions. Errors: dsat::Error, one line.
#ifndef DSAT_CLI_DETERMINED_APPLY_EXPERIMENT_H_
#define DSAT_CLI_DETERMINED_APPLY_EXPERIMENT_H_

#include "determined/read_experiment.h"
#include "dsat/host/study.h"
#include "options/kit.h"

namespace dsat::cli {

// Copies the experiment into `options`, which already hold `values`. Trials run in copies of the model directory unless
// --trial-cwd says otherwise. Throws if there are included files but no copies.
void apply_experiment(const Experiment& experiment, const ExperimentRequest& request, const Values& values,
                      host::StudyOptions& options);

}  // namespace dsat::cli

#endif  // DSAT_CLI_DETERMINED_APPLY_EXPERIMENT_H_
