// Merges DeepSpeed configurations, and checks that an experiment agrees with an engine.
//
// Threading: pure functions. Errors: dsat::Error, one line. Needs no LibTorch.
#ifndef DSAT_TRAINER_DEEPSPEED_CONFIG_H_
#define DSAT_TRAINER_DEEPSPEED_CONFIG_H_

#include <cstdint>

#include "dsat/error.h"

namespace dsat::trainer {

// `base`, an object or the path of a JSON file, with the leaves of the object `source` written over it. Objects are
// merged; all other values, also lists, are replaced. The arguments do not change.
Json overwrite_deepspeed_config(const Json& base, const Json& source);

// The batch sizes of an engine, in samples, and its ranks.
struct EngineSizes {
  int64_t train_batch_size = 1;  // of one optimizer step, all ranks
  int64_t train_micro_batch_size_per_gpu = 1;
  int64_t gradient_accumulation_steps = 1;
  int64_t data_parallel_world_size = 1;  // ranks that see different samples
  int64_t world_size = 1;
};

// Compares the sizes with those of the experiment: hyperparameters.global_batch_size (also train_batch_size),
// train_micro_batch_size_per_gpu, gradient_accumulation_steps and data_parallel_world_size; resources.slots_per_trial.
// A size that the experiment leaves out agrees with any. The error names both sides.
void reconcile_sizes(const Json& experiment, const EngineSizes& engine);

// Replaces the constants of Determined's experiment files by their values: {"type": "const", "val": 3} becomes 3, at
// any depth.
Json without_const_wrappers(const Json& hyperparameters);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_DEEPSPEED_CONFIG_H_
