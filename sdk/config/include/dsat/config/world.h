// The world size of a trial, if a study tunes it: DeepSpeed's keys autotuning.num_gpus (GPUs of a node) and
// autotuning.num_nodes.
//
// The two keys are part of a configuration's identity, and its data-parallel size follows from them. A searcher sees
// them as ordinary axes. If pipeline.stages is tuned, every configuration has the two keys, with equal values. Other
// keys of the autotuning section have no effect on a trial.
// Threading: pure functions.
#ifndef DSAT_CONFIG_WORLD_H_
#define DSAT_CONFIG_WORLD_H_

#include <cstdint>
#include <optional>

#include "dsat/error.h"

namespace dsat::config {

inline constexpr const char* kNumGpusKey = "autotuning.num_gpus";
inline constexpr const char* kNumNodesKey = "autotuning.num_nodes";
inline constexpr const char* kPipelineStagesKey = "pipeline.stages";

struct World {
  int64_t num_gpus = 1;  // of each node
  int64_t num_nodes = 1;
  int64_t size() const { return num_gpus * num_nodes; }
};

// nullopt: the configuration has no world, so all trials of its study are alike.
std::optional<World> tuned_world(const Json& config);

// Removes the autotuning section, except the keys of tuned_world().
void keep_only_world(Json& config);

// The data-parallel size by the configuration's own world; `otherwise` if it has none. Throws dsat::Error if the size
// is not a whole number.
int64_t data_parallel_size_of(const Json& config, int64_t otherwise);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_WORLD_H_
