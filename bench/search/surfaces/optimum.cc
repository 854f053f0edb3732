// Tries every point of a space without noise: the choices of axis values count like an odometer, with all legal micro
// batches for each.
#include "search/surfaces/optimum.h"

#include <algorithm>

#include "dsat/testing.h"

namespace dsat::bench {
namespace {

// Moves to the next choice of axis values, the first axis first. False: there is none.
bool next_choice(const config::StageSpace& stage, std::vector<size_t>& choice) {
  for (size_t i = 0; i < choice.size(); ++i) {
    if (++choice[i] < stage.axes[i].values.size()) return true;
    choice[i] = 0;
  }
  return false;
}

}  // namespace

Optimum find_optimum(const Surface& surface, const config::Space& space) {
  Optimum best;
  const int64_t last = std::min(surface.max_micro_batch, space.max_micro_batch.value_or(surface.max_micro_batch));
  for (const config::StageSpace& stage : space.stages) {
    std::vector<size_t> choice(stage.axes.size());
    do {
      Json config = surface.base_config();
      testing::merge(config, config::overrides(stage, choice, 1));
      SurfacePoint point = point_of(config);
      for (point.micro_batch = space.min_micro_batch; point.micro_batch <= last; ++point.micro_batch) {
        if (!space.allows_micro_batch(point.micro_batch)) continue;
        const double throughput = surface.throughput(point);
        if (throughput <= best.throughput) continue;
        best.throughput = throughput;
        best.overrides = config::overrides(stage, choice, point.micro_batch);
      }
    } while (next_choice(stage, choice));
  }
  return best;
}

double regret_percent(double throughput, double optimum) { return std::max(0.0, 100 * (1 - throughput / optimum)); }

}  // namespace dsat::bench
