// The sizes at which a measured micro batch needs a wave more or less are the borders of the cells.
#include "zero_model/speed/waves.h"

#include <algorithm>
#include <cmath>

namespace dsat::zero_model {

double whole_waves(double micro_batch, double wave) {
  // A size that fills its waves but for a rounding error fills them.
  return wave > 0 ? wave * std::ceil(micro_batch / wave - 1e-9) : micro_batch;
}

std::vector<WaveCell> wave_cells(std::vector<double> micro_batches, size_t most) {
  constexpr int kMostWaves = 6;  // in the largest micro batch: an end of more waves is worth little
  constexpr size_t kEnough = 4;
  constexpr double kNarrowest = 1e-3;  // logarithm of a cell's borders
  std::sort(micro_batches.begin(), micro_batches.end());
  micro_batches.erase(std::unique(micro_batches.begin(), micro_batches.end()), micro_batches.end());
  if (micro_batches.size() < kEnough) return {};
  const double high = micro_batches.back(), low = std::max(1.0, high / kMostWaves);
  if (low >= high) return {};
  std::vector<double> borders{low, high};
  for (const double micro_batch : micro_batches) {
    for (int waves = 1; micro_batch / waves > low; ++waves) borders.push_back(micro_batch / waves);
  }
  std::sort(borders.begin(), borders.end());
  std::vector<WaveCell> cells;
  for (size_t i = 1; i < borders.size(); ++i) {
    const double width = std::log(borders[i] / borders[i - 1]);
    if (width < kNarrowest) continue;
    cells.push_back({std::sqrt(borders[i] * borders[i - 1]), std::log(width / std::log(high / low))});
  }
  std::stable_sort(cells.begin(), cells.end(),
                   [](const WaveCell& a, const WaveCell& b) { return a.log_prior > b.log_prior; });
  if (cells.size() > most) cells.resize(most);
  return cells;
}

}  // namespace dsat::zero_model
