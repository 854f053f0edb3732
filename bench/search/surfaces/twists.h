// The mechanisms that change a surface's physics. Each has its strength as an argument.
// Units: as in surface.h. Threading: pure functions. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_TWISTS_H_
#define DSAT_BENCH_SEARCH_SURFACES_TWISTS_H_

#include "search/surfaces/surface.h"

namespace dsat::bench {

// Compute slows by `strength` for each doubling of the micro batch beyond `from`.
Twist falls_beyond(double from, double strength);

// The allocator thrashes: from `share` of the memory on, steps slow down, to 1 + strength times at full memory.
Twist thrashes_near_full(double share, double strength);

// Tiles: a micro batch costs as much as the next multiple of `tile`. A micro batch that is no multiple also slows by
// `misfit`.
Twist runs_in_tiles(int64_t tile, double misfit);

// Within [from, below) another algorithm is used, with a workspace of this share of the memory.
Twist needs_workspace_between(int64_t from, int64_t below, double share_of_memory, double speedup);

// Memory grows with a power of the micro batch. It is unchanged at micro batch `at`.
Twist memory_power(double exponent, double at);

// The allocator gives whole blocks.
Twist memory_blocks(double block_bytes);

// Backward slows with the distance of log10(reduce bucket) from an optimum; forward and step with the allgather
// bucket's.
Twist bucket_optimum(double reduce, double allgather, double strength);

// Overlap takes multiprocessors from compute.
Twist overlap_hurts(double slowdown);

// A factor of the whole step for each stage.
Twist stage_factors(std::vector<double> factors);

// The data loader gives at most this many samples a second for all devices.
Twist input_bound(double samples_per_s);

// Two humps: micro batches near `at`, within this width in log2, are slow.
Twist valley(double at, double log2_width, double depth);

// Times and memory are random smooth functions of log micro batch, stage, buckets and flags, unlike ZeRO.
Twist anything(uint64_t seed, double roughness);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_TWISTS_H_
