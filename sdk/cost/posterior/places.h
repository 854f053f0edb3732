// Where trials lie, as numbers: the axes of a tuning space, and configurations on them.
//
// Threading: plain values. Units: bytes per device, samples. Errors: dsat::Error for a model of an impossible size.
#ifndef DSAT_COST_POSTERIOR_PLACES_H_
#define DSAT_COST_POSTERIOR_PLACES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "dsat/cost/model_states.h"
#include "dsat/cost/setup.h"

namespace dsat::cost {

// One tunable key over all stages, where config::Axis is that of one stage. A numeric axis has coordinates in [0, 1],
// on a logarithmic scale where the values span a factor of four. The coordinates of a categorical axis are indices into
// `values`.
struct ModelAxis {
  std::string key;
  std::vector<Json> values;  // of all stages
  bool numeric = false;
  bool logarithmic = false;
  double low = 0, high = 1;
};

inline constexpr double kAbsent = -1;

// A configuration without its micro batch.
struct MemoryArm {
  int stage = 0;
  Setup setup;                                                          // at micro batch 1
  double state_bytes = 0, buffer_bytes = 0, optional_buffer_bytes = 0;  // by the formulas
  double optimizer_bytes = 0;       // the part of the states that an optimizer with fewer of them would not have
  std::vector<double> coordinates;  // of each axis; kAbsent where the stage does not have it
};

// Without coordinates.
MemoryArm arm_of(const ModelSize& size, const Setup& setup);

struct MemoryPoint {
  const MemoryArm* arm = nullptr;
  int64_t micro_batch = 1;
};

}  // namespace dsat::cost

#endif  // DSAT_COST_POSTERIOR_PLACES_H_
