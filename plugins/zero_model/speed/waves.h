// Waves: sizes of micro batch up to which a device takes no longer than for fewer samples.
//
// Purpose: kernels run in whole waves of tiles, one tile a multiprocessor at a time. A pass over one sample more than a
//   wave holds takes as long as a pass over two waves (wave quantisation: NVIDIA, Matrix Multiplication Background
//   User's Guide). The largest micro batch of a wave is then far faster than its neighbours above.
// Method: what measured micro batches m tell of a wave's size depends on ceil(m / wave) alone, which changes at m / k
//   for whole k. So the sizes fall into a few cells, and phase_model.h weighs each by its evidence.
// Units: samples of a device. Threading: pure functions. Errors: none.
#ifndef DSAT_PLUGINS_ZERO_MODEL_SPEED_WAVES_H_
#define DSAT_PLUGINS_ZERO_MODEL_SPEED_WAVES_H_

#include <cstddef>
#include <vector>

namespace dsat::zero_model {

// Samples that whole waves hold: at least `micro_batch`; just that where `wave` is 0.
double whole_waves(double micro_batch, double wave);

// Sizes of a wave that the measurements cannot tell apart.
struct WaveCell {
  double wave = 0;       // its middle
  double log_prior = 0;  // the logarithm of the cell's share of all sizes
};

// The cells from a sixth of the largest micro batch up to it; the logarithm of the size is uniform. Empty where fewer
// than four different micro batches were measured. At most `most` cells, the widest ones.
std::vector<WaveCell> wave_cells(std::vector<double> micro_batches, size_t most);

}  // namespace dsat::zero_model

#endif  // DSAT_PLUGINS_ZERO_MODEL_SPEED_WAVES_H_
