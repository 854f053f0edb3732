// The best point of a surface's space, found by trying all points without noise.
// Units: samples a second, percent. Threading: pure functions. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_OPTIMUM_H_
#define DSAT_BENCH_SEARCH_SURFACES_OPTIMUM_H_

#include "search/surfaces/surface.h"

namespace dsat::bench {

struct Optimum {
  double throughput = 0;  // 0: nothing fits
  Json overrides;
};

// Tries every choice of every stage with every micro batch up to the surface's max_micro_batch: 10^5 to 10^6 points.
Optimum find_optimum(const Surface& surface, const config::Space& space);

// The distance to the optimum in %. 0 also for a searcher that finds values better than those in the space.
double regret_percent(double throughput, double optimum);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_OPTIMUM_H_
