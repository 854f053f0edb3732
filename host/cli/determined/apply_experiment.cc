// Copies each part of the experiment into the study's options. Values of the command line stay.
#include "determined/apply_experiment.h"

#include "dsat/error.h"

namespace dsat::cli {

void apply_experiment(const Experiment& experiment, const ExperimentRequest& request, const Values& values,
                      host::StudyOptions& options) {
  options.command = experiment.command;
  options.cwd = request.model_dir;
  options.includes = request.includes;
  options.name = experiment.name.empty() ? request.file.stem().string() : experiment.name;
  options.ds_config = experiment.ds_config;
  options.config_by_environment = true;
  options.config_overwrites = experiment.config_overwrites;
  options.hyperparameters = experiment.hyperparameters;
  options.variables = experiment.variables;
  const bool sized = !options.num_gpus.empty() || !options.num_nodes.empty();
  if (!options.slots_per_trial && !sized) options.slots_per_trial = experiment.slots_per_trial;
  if (!options.max_slots) options.max_slots = experiment.max_slots;
  if (!options.max_restarts) options.max_restarts = experiment.max_restarts;
  // The script reads the experiment there, so values of the command line go into it, too.
  options.experiment = experiment.document;
  if (options.slots_per_trial) options.experiment["resources"]["slots_per_trial"] = *options.slots_per_trial;
  if (options.max_restarts) options.experiment["max_restarts"] = *options.max_restarts;
  if (!values.given("metric") && experiment.metric) options.metric = *experiment.metric;
  if (!values.given("trial-cwd")) options.trial_cwd = host::TrialCwd::copy;
  if (options.trial_cwd == host::TrialCwd::keep && !options.includes.empty()) {
    throw Error("--include puts files into a copy of MODEL_DIR: leave --trial-cwd keep out");
  }
}

}  // namespace dsat::cli
