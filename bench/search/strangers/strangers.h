// Jobs by someone who does not know the searcher: ten families, each with one thing that decides where its best is.
//
// Purpose: a bench that is not the searcher's own. Its formulas come from papers and from the sources of engines
//   (engine.h, device.h, fabric.h), never from a searcher, and **nobody who works on a searcher changes them**. Models,
//   devices and links are common ones, drawn from a seed: searchers are tuned on seeds 1 and 2, judged on others.
// Threading: pure functions. Errors: none.
#ifndef DSAT_BENCH_SEARCH_STRANGERS_STRANGERS_H_
#define DSAT_BENCH_SEARCH_STRANGERS_STRANGERS_H_

#include <vector>

#include "search/strangers/engine.h"
#include "search/surfaces/draw.h"
#include "search/surfaces/surface.h"

namespace dsat::bench {

// A job before it is a surface. `surface` has what is not physics: noise, limits, how the machine drifts.
struct StrangeJob {
  Training training;
  Surface surface;
  bool tight = false;  // other buffers fill the device until only the leanest values fit the largest micro batch
};

struct StrangeFamily {
  const char* name;
  const char* about;
  void (*draw)(Draw&, StrangeJob&);
};

std::vector<StrangeFamily> strange_families();

constexpr int kStrangeEach = 3;  // surfaces of a family in the tables

// `each` surfaces of every family, named by family and number.
std::vector<Surface> strange_surfaces(uint64_t seed, int each);

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_STRANGERS_STRANGERS_H_
