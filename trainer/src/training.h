// One rank's whole run: build the model, train, measure, write what a tuning trial asks for.
//
// Threading: called once in a process, after install_budget(). Errors: PeerLost, dsat::Error, whatever LibTorch throws;
// ask out_of_memory() for the reason.
#ifndef DSAT_TRAINER_TRAINING_H_
#define DSAT_TRAINER_TRAINING_H_

#include <cstdint>
#include <optional>

#include "comm.h"
#include "options.h"
#include "settings.h"

namespace dsat::trainer {

struct Plan {
  ModelOptions model;
  Settings settings;
  uint64_t seed = 42;
  std::optional<int64_t> steps;
  std::optional<uint64_t> device_memory;  // bytes, only to be reported
  bool activation_checkpointing = false;
};

inline constexpr int64_t kDefaultSteps = 20;

// All ranks call it; rank 0 writes files and prints losses to stdout.
void train(const Plan& plan, Comm& comm);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_TRAINING_H_
