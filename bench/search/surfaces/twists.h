// The mechanisms that bend a surface away from the plain physics. Each is made with its strength.
// Units: as in surface.h. Threading: pure functions. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_TWISTS_H_
#define DSAT_BENCH_SEARCH_SURFACES_TWISTS_H_

#include "search/surfaces/surface.h"

namespace dsat::bench {

// Compute slows by `strength` for each doubling of the micro batch beyond `from`.
Twist falls_beyond(double from, double strength);

// The allocator thrashes: from `share` of the memory on, steps slow down to 1 + strength times at the brim.
Twist thrashes_near_full(double share, double strength);

// Tiles: a micro batch costs as much as the next multiple of `tile`, and one that is not a multiple slows by `misfit`.
Twist runs_in_tiles(int64_t tile, double misfit);

// Between two micro batches another algorithm is chosen, which needs a workspace of this share of the memory.
Twist needs_workspace_between(int64_t from, int64_t below, double share_of_memory, double speedup);

// Memory grows with a power of the micro batch, equal at micro batch `at`.
Twist memory_power(double exponent, double at);

// The allocator hands out whole blocks.
Twist memory_blocks(double block_bytes);

// Backward slows with the distance of log10(reduce bucket) from an optimum, and step with that of the all-gather's.
Twist bucket_optimum(double reduce, double allgather, double strength);

// Overlap takes multiprocessors from compute.
Twist overlap_hurts(double slowdown);

// Each stage's own factor on the whole step.
Twist stage_factors(std::vector<double> factors);

// Input comes at most so many samples a second, all devices together.
Twist input_bound(double samples_per_s);

// Two humps: micro batches near `valley` (in log2, this wide) are slow.
Twist valley(double at, double log2_width, double depth);

// Not ZeRO at all: times and memory are random smooth functions of log micro batch, stage, buckets and flags.
Twist anything(uint64_t seed, double roughness);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_TWISTS_H_
