// The `autotuning` section of a DeepSpeed configuration, read and checked. docs/migrate-from-deepspeed.md has the keys.
//
// Threading: pure functions. Errors: dsat::Error, one line that names the file, the key and the values allowed.
#ifndef DSAT_CLI_DEEPSPEED_AUTOTUNING_SECTION_H_
#define DSAT_CLI_DEEPSPEED_AUTOTUNING_SECTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dsat/error.h"

namespace dsat::cli {

// A key that is absent or null is nullopt, or empty.
struct AutotuningSection {
  bool present = false;
  std::optional<bool> enabled, fast, overwrite;
  std::optional<std::string> metric, results_dir, exps_dir;
  std::optional<std::string> tuner_type;                        // gridsearch, random or model_based
  std::optional<int64_t> start_profile_step, end_profile_step;  // the older names start_step, end_step work, too
  std::optional<int64_t> max_train_batch_size, min_micro_batch, max_micro_batch;
  std::optional<int64_t> num_tuning_micro_batch_sizes, tuner_early_stopping, tuner_num_trials;
  std::vector<std::pair<std::string, std::string>> arg_mappings;  // dotted config key -> flag
  std::vector<int64_t> num_gpus, num_nodes;                       // several values are tuned
  bool gives_model_size = false;                                  // model_info.num_params
  std::vector<std::string> without_effect;                        // keys that dsat ignores
  std::vector<std::string> notices;                               // about keys with stray white space
};

// `where` names the configuration in messages.
AutotuningSection read_autotuning_section(const Json& config, const std::string& where);

}  // namespace dsat::cli

#endif  // DSAT_CLI_DEEPSPEED_AUTOTUNING_SECTION_H_
