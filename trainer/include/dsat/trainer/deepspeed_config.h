// DeepSpeed configurations made of a base and what overwrites it, and whether an experiment agrees with an engine.
//
// Threading: pure functions. Errors: dsat::Error, one line. Needs no LibTorch.
#ifndef DSAT_TRAINER_DEEPSPEED_CONFIG_H_
#define DSAT_TRAINER_DEEPSPEED_CONFIG_H_

#include <cstdint>

#include "dsat/error.h"

namespace dsat::trainer {

// `base`, an object or the path of a JSON file, with the leaves of the object `source` written over it: objects merge,
// anything else, lists too, is replaced whole. Neither argument changes.
Json overwrite_deepspeed_config(const Json& base, const Json& source);

// The batch sizes that an engine trains with, in samples, and the ranks that it is spread over.
struct EngineSizes {
  int64_t train_batch_size = 1;  // of one optimizer step, all ranks
  int64_t train_micro_batch_size_per_gpu = 1;
  int64_t gradient_accumulation_steps = 1;
  int64_t data_parallel_world_size = 1;  // ranks that see different samples
  int64_t world_size = 1;
};

// Compares them with what the experiment says of the same: hyperparameters.global_batch_size (also train_batch_size),
// train_micro_batch_size_per_gpu, gradient_accumulation_steps and data_parallel_world_size; resources.slots_per_trial.
// What the experiment leaves out agrees with everything. The error names both sides.
void reconcile_sizes(const Json& experiment, const EngineSizes& engine);

// A hyperparameter as Determined's experiment files write it: {"type": "const", "val": 3} is 3, at any depth.
Json without_const_wrappers(const Json& hyperparameters);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_DEEPSPEED_CONFIG_H_
