// One trial of a surface: what a host would report of it, and how long it would have taken.
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

// What makes two trials the same: the configuration without `autotuning`.
std::string identity(Json config);

// The `repetition`th (from 0) trial of this configuration in the study of this seed; alone: no other trial runs.
SurfaceTrial measure(const Surface& surface, const Json& config, uint64_t seed, uint64_t repetition, bool alone = true);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_MEASURE_H_
