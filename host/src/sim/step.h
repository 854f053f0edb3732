// Computes time and memory of one training step, without noise.
//
// docs/simulator.md has the formulas and their sources. Threading: pure functions. Units: seconds, bytes, FLOP.
#ifndef DSAT_HOST_SIM_STEP_H_
#define DSAT_HOST_SIM_STEP_H_

#include "dsat/cost/setup.h"
#include "sim/scenario.h"

namespace dsat::host::sim {

// A configuration as the engine reads it, for the devices of one trial.
struct Run {
  cost::Setup setup;
  double accumulation = 1;
  bool reduce_scatter = true, allgather_partitions = true, contiguous_gradients = true;
  double persistence_threshold = 1e5;  // stage 3: smaller parameters are not partitioned
  double max_live = 1e9, max_reuse_distance = 1e9;
  cost::Checkpointing checkpointing = cost::Checkpointing::none;
};
Run run_from_config(const Scenario& scenario, const Json& config, int slots);

struct StepTime {
  double forward = 0, backward = 0;  // of one micro step
  double step = 0;                   // of the optimizer, and the communication after it
  double total = 0;                  // of one optimizer step with accumulation and pipeline bubble
  double flops_per_device = 0;       // of one optimizer step
};
StepTime step_time(const Scenario& scenario, const Run& run);

struct Memory {
  double allocated = 0;  // at the peak
  double reserved = 0;   // allocated memory with fragmentation and the fixed part
  double activations = 0;
};
Memory step_memory(const Scenario& scenario, const Run& run);
// The memory of one forward pass without gradients, as in a model-information run.
Memory forward_memory(const Scenario& scenario, const Run& run);

}  // namespace dsat::host::sim

#endif  // DSAT_HOST_SIM_STEP_H_
