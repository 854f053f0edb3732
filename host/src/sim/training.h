// The losses and gradient norms of simulated trials, right ones and, where a fault is planted, wrong ones.
//
// The keys: docs/simulator.md. Threading: plain values. Errors: dsat::Error that names file and key.
#ifndef DSAT_HOST_SIM_TRAINING_H_
#define DSAT_HOST_SIM_TRAINING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsat/error.h"
#include "dsat/host/record.h"

namespace dsat::host::sim {

// What goes wrong in trials whose configuration has all of these values.
struct TrainingFault {
  Json when = Json::object();  // dotted key -> value
  double grad_norm_factor = 1;
  bool is_stuck = false;          // the loss stays
  std::optional<int64_t> nan_at;  // the loss is NaN from this step on, counted from 1
};

struct Training {
  double loss = 0, grad_norm = 0;  // of the first step at a train batch of 1; 0: trials report nothing
  double noise = 0;                // standard deviation between runs of one configuration, relative
  std::vector<TrainingFault> faults;
};

// Reads the section `training`.
Training read_training(const Json& scenario, const std::string& source);

// The losses and norms that a trial of `steps` steps reports. The noise follows from `seed`.
Curve curve_of(const Training& training, const Json& config, int64_t steps, uint64_t seed);

}  // namespace dsat::host::sim

#endif  // DSAT_HOST_SIM_TRAINING_H_
