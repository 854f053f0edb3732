// The scenarios, drawn from a seed of the caller, so that searchers are tuned on one seed and judged on others.
// docs/bench-search.md describes the mechanisms.
// Threading: pure functions. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_SURFACES_H_
#define DSAT_BENCH_SEARCH_SURFACES_SURFACES_H_

#include <vector>

#include "search/surfaces/surface.h"

namespace dsat::bench {

// Six very different handmade jobs. Seeds other than 1 change their constants.
std::vector<Surface> six_surfaces(uint64_t seed);

// Jobs under DeepSpeed with random forms of physics and random constants.
std::vector<Surface> job_surfaces(uint64_t seed, int count);

// Twelve jobs with unusual physics, one mechanism each.
std::vector<Surface> odd_surfaces(uint64_t seed);

// The halves of a surface's family: results with a reported peak, or without one as from DeepSpeed's own engine.
// Everything else, noise too, is the same.
Surface reporting(Surface surface);
Surface silent(Surface surface);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_SURFACES_H_
