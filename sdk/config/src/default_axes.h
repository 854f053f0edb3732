// The axes of the default space, and the stages at which DeepSpeed reads a key.
#ifndef DSAT_CONFIG_SRC_DEFAULT_AXES_H_
#define DSAT_CONFIG_SRC_DEFAULT_AXES_H_

#include <string>
#include <vector>

#include "dsat/config/space.h"

namespace dsat::config {

inline constexpr const char* kContiguousKey = "zero_optimization.contiguous_gradients";

std::vector<Axis> default_axes(int stage);

// Does the key belong to the offload rules? Such keys are axes at every stage, so that an allowed value replaces a
// forbidden one of the base configuration.
bool switches_offload(const std::string& key);

// The lowest stage at which DeepSpeed reads a key. At a lower stage its axis would measure noise.
int lowest_stage(const std::string& key);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_SRC_DEFAULT_AXES_H_
