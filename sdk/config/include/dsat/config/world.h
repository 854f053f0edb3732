// The size of a trial where a study tunes it: DeepSpeed's own keys autotuning.num_gpus (GPUs of a node) and
// autotuning.num_nodes.
//
// The rest of the autotuning section says nothing of a trial. If a configuration has both of these keys, they are part
// of what identifies it, and its data-parallel size follows them. A searcher sees two axes like any other. If
// pipeline.stages is tuned, every configuration has them too, with the same values everywhere.
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

// nullopt: the configuration does not say, and all trials of its study are alike.
std::optional<World> tuned_world(const Json& config);

// Removes all of the autotuning section but the world of tuned_world().
void keep_only_world(Json& config);

// The data-parallel size by the configuration's own world, if it names one; else `otherwise`. Throws dsat::Error if the
// size is not a whole number.
int64_t data_parallel_size_of(const Json& config, int64_t otherwise);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_WORLD_H_
