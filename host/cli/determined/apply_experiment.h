// What an experiment file of Determined's means for a study.
//
// An option on the command line beats the file. What the file leaves out keeps dsat's defaults. Threading: pure
// functions. Errors: dsat::Error, one line.
#ifndef DSAT_CLI_DETERMINED_APPLY_EXPERIMENT_H_
#define DSAT_CLI_DETERMINED_APPLY_EXPERIMENT_H_

#include "determined/read_experiment.h"
#include "dsat/host/study.h"
#include "options/kit.h"

namespace dsat::cli {

// Takes the experiment into `options`, which hold what `values` give. Trials run in copies of the model directory
// unless --trial-cwd says otherwise. Throws where that option leaves no copy for the included files.
void apply_experiment(const Experiment& experiment, const ExperimentRequest& request, const Values& values,
                      host::StudyOptions& options);

}  // namespace dsat::cli

#endif  // DSAT_CLI_DETERMINED_APPLY_EXPERIMENT_H_
