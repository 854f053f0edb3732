// The scenarios. Those of the families zero, other and held-back are drawn at random from fixed seeds, those of six,
// jobs and odd from a seed that the caller chooses: searchers are tuned on one seed and judged on others.
// docs/bench-search.md describes their mechanisms. Searchers must not be tuned to any of them.
// Threading: pure functions. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_SURFACES_H_
#define DSAT_BENCH_SEARCH_SURFACES_SURFACES_H_

#include <vector>

#include "search/surfaces/draw.h"
#include "search/surfaces/surface.h"

namespace dsat::bench {

// Six models on 1 to 64 devices, two of them hard: only stage 3 fits well over a slow network; memory so tight that
// bucket sizes decide the micro batch.
std::vector<Surface> classic_surfaces();

// ZeRO's physics with constants drawn at random.
std::vector<Surface> zero_surfaces(uint64_t seed, int count);

// Physics that differ on purpose, a mechanism or two each.
std::vector<Surface> other_surfaces();

// For before a release: other seeds of the first family, mechanisms that the second one does not have.
std::vector<Surface> held_back_surfaces();

// Six jobs made by hand, quite different from each other. Another seed than 1 moves their constants.
std::vector<Surface> six_surfaces(uint64_t seed);

// Jobs under DeepSpeed, whose forms of physics are drawn with their constants.
std::vector<Surface> job_surfaces(uint64_t seed, int count);

// Twelve jobs whose physics differ from what anyone would write down first, a mechanism each.
std::vector<Surface> odd_surfaces(uint64_t seed);

// A surface's half of its family: results that report their peak, or none, as DeepSpeed's own engine.
// Everything else is the same, the noise too.
Surface reporting(Surface surface);
Surface silent(Surface surface);

// One job of the first family: plausible, and worth tuning.
Surface draw_surface(Draw& draw);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_SURFACES_H_
