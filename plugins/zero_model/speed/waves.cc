// The sizes at which a measured micro batch needs a wave more or less are the borders of the ranges.
#include "zero_model/speed/waves.h"

#include <algorithm>
#include <cmath>

namespace dsat::zero_model {
namespace {

constexpr int kMostWaves = 6;  // in a micro batch: an end of more waves is worth little

// The middle one of the allowed micro batches inside the borders, or else the middle itself.
double middle(double low, double high, const search::MicroBatches& allowed) {
  const int64_t first = allowed.rank_at_or_below(low) + 1, last = allowed.rank_at_or_below(std::nextafter(high, low));
  if (first > last) return (low + high) / 2;
  return static_cast<double>(allowed.at(first + (last - first + 1) / 2));
}

}  // namespace

double whole_waves(double micro_batch, double wave) {
  // A size that fills its waves but for a rounding error fills them.
  return wave > 0 ? wave * std::ceil(micro_batch / wave - 1e-9) : micro_batch;
}

std::vector<WaveRange> wave_ranges(std::vector<double> measured, double least, const search::MicroBatches& allowed) {
  constexpr size_t kEnough = 4;
  constexpr double kNarrowest = 1e-9;  // logarithm of a range's borders: a rounding error
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
