// dsat-trial's own training: a model on random data.
//
// Threading: one rank, one thread. Errors: as the engine's.
#ifndef DSAT_TRAINER_PROGRAM_BUILTIN_TRAINING_H_
#define DSAT_TRAINER_PROGRAM_BUILTIN_TRAINING_H_

#include <cstdint>
#include <string>

#include "dsat/trainer/engine.h"
#include "dsat/trainer/world.h"
#include "settings/options.h"

namespace dsat::trainer {

inline constexpr int64_t kDefaultSteps = 20;

// A model under its engine.
class Training {
 public:
  virtual ~Training() = default;
  // The mean loss over its micro steps and the ranks, or over this rank's alone.
  virtual double optimizer_step() = 0;
  virtual ModelEngine& engine() = 0;
};

// All ranks call it; rank 0 prints losses to stdout.
void train(const Options& options, World& world);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_PROGRAM_BUILTIN_TRAINING_H_
