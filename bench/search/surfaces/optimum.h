// The best of a surface's space, by trying all of it without noise.
// Units: samples a second, percent. Threading: pure functions. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_OPTIMUM_H_
#define DSAT_BENCH_SEARCH_SURFACES_OPTIMUM_H_

#include "search/surfaces/surface.h"

namespace dsat::bench {

struct Optimum {
  double throughput = 0;  // 0: nothing fits
  Json overrides;
};

// Every choice of every stage with every micro batch up to the surface's max_micro_batch: about 10^5 to 10^6 points.
Optimum find_optimum(const Surface& surface, const config::Space& space);

// How far below the optimum, in %; a searcher may find better values than those that the space lists: 0 then.
double regret_percent(double throughput, double optimum);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_OPTIMUM_H_
