// The helpers that both files of the engine share. Threading: pure functions. Units: bytes. Errors: none.
#ifndef DSAT_BENCH_SEARCH_STRANGERS_ENGINE_PARTS_H_
#define DSAT_BENCH_SEARCH_STRANGERS_ENGINE_PARTS_H_

#include "search/strangers/engine.h"

namespace dsat::bench {

// Elements of the two modules of a layer that stay gathered at stage 3: tensors up to the threshold.
struct Persistent {
  double attention = 0, mlp = 0;
};
Persistent persistent_of(const Network& network, double threshold);

struct Peak {
  double needed_bytes = 0, reported_bytes = 0;
};
Peak peak_of(const Training& training, const SurfacePoint& point);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_STRANGERS_ENGINE_PARTS_H_
