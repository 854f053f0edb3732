// The mechanisms that change a surface's physics. Each has its strength as an argument.
// Units: as in surface.h. Threading: pure functions. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_TWISTS_H_
#define DSAT_BENCH_SEARCH_SURFACES_TWISTS_H_

#include "search/surfaces/surface.h"

namespace dsat::bench {

// The allocator thrashes: from `share` of the memory on, steps slow down, to 1 + strength times at full memory.
Twist thrashes_near_full(double share, double strength);

// Times and memory are random smooth functions of log micro batch, stage, buckets and flags, unlike ZeRO.
Twist anything(uint64_t seed, double roughness);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_TWISTS_H_
