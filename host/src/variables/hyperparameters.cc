// A trial's hyperparameters are a copy of the experiment file's with the trial's configuration in the known keys.
#include "variables/hyperparameters.h"

#include "dsat/config/batch.h"
#include "dsat/config/json.h"

namespace dsat::host {

Json trial_hyperparameters(Json hyperparameters, const Json& config, const std::filesystem::path& config_file) {
  hyperparameters["deepspeed_config"] = config_file.string();
  hyperparameters["overwrite_deepspeed_args"] = config;
  const auto inlined = hyperparameters.find("ds_config");
  if (inlined != hyperparameters.end()) {
    if (inlined->is_object()) *inlined = config;
    if (inlined->is_string()) *inlined = config_file.string();
  }
  const Json* train_batch = config::find(config, config::kTrainBatchKey);
  if (hyperparameters.contains("global_batch_size") && train_batch != nullptr) {
    hyperparameters["global_batch_size"] = *train_batch;
  }
  return hyperparameters;
}

}  // namespace dsat::host
