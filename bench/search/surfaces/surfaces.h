// The scenarios. The families zero, other and held-back are drawn from fixed seeds; six, jobs and odd from a seed of
// the caller, so that searchers are tuned on one seed and judged on others. docs/bench-search.md describes the
// mechanisms. Searchers must not be tuned to any of them.
// Threading: pure functions. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_SURFACES_H_
#define DSAT_BENCH_SEARCH_SURFACES_SURFACES_H_

#include <vector>

#include "search/surfaces/draw.h"
#include "search/surfaces/surface.h"

namespace dsat::bench {

// Six models on 1 to 64 devices. Two are hard: in one only stage 3 fits well over a slow network; in the other memory
// is so tight that bucket sizes decide the micro batch.
std::vector<Surface> classic_surfaces();

// ZeRO's physics with random constants.
std::vector<Surface> zero_surfaces(uint64_t seed, int count);

// Different physics on purpose, with one or two mechanisms each.
std::vector<Surface> other_surfaces();

// For use before a release: other seeds of the family zero, and mechanisms that the family other lacks.
std::vector<Surface> held_back_surfaces();

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

// A job of the family zero that is plausible and worth tuning.
Surface draw_surface(Draw& draw);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_SURFACES_H_
