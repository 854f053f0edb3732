// dsat-trial's own training: a built-in model on random data.
//
// Threading: one rank, one thread. Errors: as the engine's.
#ifndef DSAT_TRAINER_TRAINING_H_
#define DSAT_TRAINER_TRAINING_H_

#include "dsat/trainer/world.h"
#include "options.h"

namespace dsat::trainer {

inline constexpr int64_t kDefaultSteps = 20;

// All ranks call it; rank 0 prints losses to stdout.
void train(const Options& options, World& world);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_TRAINING_H_
