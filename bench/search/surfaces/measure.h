// One trial of a surface: the host's report of it, and its duration.
// Units: virtual seconds. Threading: pure functions. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_MEASURE_H_
#define DSAT_BENCH_SEARCH_SURFACES_MEASURE_H_

#include <string>

#include "dsat/testing.h"
#include "search/surfaces/surface.h"

namespace dsat::bench {

struct SurfaceTrial {
  testing::Answer answer;
  double duration_s = 0;
};

// The text by which trials are the same: the configuration without `autotuning`.
std::string identity(Json config);

// A trial of this configuration in the study of this seed. `repetition` counts from 0. `alone`: no other trial runs.
// `now_s`: when it starts, where the machine changes.
SurfaceTrial measure(const Surface& surface, const Json& config, uint64_t seed, uint64_t repetition, bool alone = true,
                     double now_s = 0);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_MEASURE_H_
