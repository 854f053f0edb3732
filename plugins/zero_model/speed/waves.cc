// The borders of the ranges are the sizes at which the number of waves of a measured micro batch changes.
#include "zero_model/speed/waves.h"

#include <algorithm>
#include <cmath>

namespace dsat::zero_model {
namespace {

constexpr int kMostWaves = 6;  // in a micro batch; the end of a later wave hardly matters

// The middle one of the allowed micro batches inside the borders. If none is inside: the middle of the borders.
double middle(double low, double high, const search::MicroBatches& allowed) {
  const int64_t first = allowed.rank_at_or_below(low) + 1, last = allowed.rank_at_or_below(std::nextafter(high, low));
  if (first > last) return (low + high) / 2;
  return static_cast<double>(allowed.at(first + (last - first + 1) / 2));
}

}  // namespace

double whole_waves(double micro_batch, double wave) {
  // The last wave may be overfull by a rounding error.
  return wave > 0 ? wave * std::ceil(micro_batch / wave - 1e-9) : micro_batch;
}

std::vector<WaveRange> wave_ranges(std::vector<double> measured, double least, const search::MicroBatches& allowed) {
  constexpr size_t kEnough = 4;
  constexpr double kNarrowest = 1e-9;  // a range whose logarithm is narrower is a rounding error
  std::sort(measured.begin(), measured.end());
  measured.erase(std::unique(measured.begin(), measured.end()), measured.end());
  if (measured.size() < kEnough) return {};
  const double high = measured.back(), low = std::max(1.0, least / kMostWaves);
  if (low >= high) return {};
  std::vector<double> borders{low, high};
  for (const double micro_batch : measured) {
    for (int waves = 1; waves <= kMostWaves && micro_batch / waves > low; ++waves) {
      borders.push_back(micro_batch / waves);
    }
  }
  std::sort(borders.begin(), borders.end());
  std::vector<WaveRange> ranges;
  for (size_t i = 1; i < borders.size(); ++i) {
    const double from = borders[i - 1], to = borders[i], width = std::log(to / from);
    if (width < kNarrowest) continue;
    ranges.push_back({from, to, middle(from, to, allowed), std::log(width / std::log(high / low))});
  }
  return ranges;
}

bool divides(double micro_batch, const WaveRange& range) {
  constexpr double kRounding = 1e-9;
  for (int waves = 1; waves <= kMostWaves; ++waves) {
    const double border = micro_batch / waves;
    if (range.low * (1 + kRounding) < border && border < range.high * (1 - kRounding)) return true;
  }
  return false;
}

}  // namespace dsat::zero_model
