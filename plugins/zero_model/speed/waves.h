// Waves: sizes of micro batch up to which a device takes no longer than for fewer samples.
//
// Purpose: kernels run in whole waves of tiles, one tile a multiprocessor at a time. A pass over one sample more than a
//   wave holds takes as long as a pass over two waves (wave quantisation: NVIDIA, Matrix Multiplication Background
//   User's Guide). The largest micro batch of a wave is then far faster than its neighbours above.
// Method: what measured micro batches m tell of a wave's size depends almost only on ceil(m / wave), which changes at
//   m / k for whole k. So the sizes fall into ranges, and time_model.h weighs one size of each by its evidence.
// Units: samples of a device. Threading: pure functions. Errors: none.
#ifndef DSAT_PLUGINS_ZERO_MODEL_SPEED_WAVES_H_
#define DSAT_PLUGINS_ZERO_MODEL_SPEED_WAVES_H_

#include <vector>

#include "search/micro_batches.h"

namespace dsat::zero_model {

// Samples that whole waves hold: at least `micro_batch`; just that where `wave` is 0.
double whole_waves(double micro_batch, double wave);

// Sizes of a wave, low <= size < high, that the measurements hardly tell apart.
struct WaveRange {
  double low = 0, high = 0;
  double wave = 0;       // the size that stands for them
  double log_prior = 0;  // the logarithm of the range's share of all sizes
};

// The ranges between a sixth of `least` and the largest of the measured micro batches; the logarithm of the size is
// uniform. Each stage has a largest measured micro batch; `least` is the smallest of these. A measurement at the `wave`
// of a range halves it: that is the middle one of the allowed micro batches inside. Empty where fewer than four
// different micro batches were measured.
std::vector<WaveRange> wave_ranges(std::vector<double> measured, double least, const search::MicroBatches& allowed);

// Whether a measurement of this micro batch tells some sizes of the range from the others.
bool divides(double micro_batch, const WaveRange& range);

}  // namespace dsat::zero_model

#endif  // DSAT_PLUGINS_ZERO_MODEL_SPEED_WAVES_H_
