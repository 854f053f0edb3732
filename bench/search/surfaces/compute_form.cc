// Saturation gives a smooth time. Waves, tiles, caches, power and algorithms bend it, and the host's launches bound it
// from below. Backward has other tiles and is longer by a ratio.
#include "search/surfaces/compute_form.h"

#include <algorithm>
#include <cmath>

namespace dsat::bench {
namespace {

double used_share(const ComputeForm& form, double samples) {
  switch (form.saturation) {
    case Saturation::hyperbola:
      return samples / (samples + form.half);
    case Saturation::hill:
      return 1 / (1 + std::pow(form.half / samples, form.exponent));
    case Saturation::exponential:
      return 1 - std::exp2(-samples / form.half);
    case Saturation::power:
      return std::min(1.0, std::pow(samples / form.half, form.exponent));
    case Saturation::roofline:
      return std::min(1.0, samples / form.half);
  }
  return 1;
}

// The mean of ceil(x) / x over the kernels, where x is the number of waves. Untiled work counts as 1.
double wave_factor(const ComputeForm& form, double samples, double tiles_scale) {
  double factor = 1;
  for (const TiledKernels& kernels : form.kernels) {
    const double waves = std::ceil(samples * kernels.tiles_per_sample * tiles_scale) / form.multiprocessors;
    factor += kernels.share * (std::ceil(waves) / waves - 1);
  }
  return factor;
}

double slowdown(const ComputeForm& form, int64_t micro_batch, double used) {
  const double samples = static_cast<double>(micro_batch);
  double factor = 1 + form.throttle * used * used * used;
  if (micro_batch % form.multiple != 0) factor *= 1 + form.misfit;
  if (form.drop_at > 0) {
    factor *= 1 + form.drop / (1 + std::exp2(-6 * std::log2(samples / form.drop_at) / form.drop_width));
  }
  for (const AlgorithmRange& range : form.algorithms) {
    if (micro_batch >= range.from && micro_batch < range.below) factor /= range.speedup;
  }
  return factor;
}

double pass_s(const ComputeForm& form, int64_t micro_batch, double ratio, double tiles_scale) {
  const double samples = static_cast<double>(micro_batch);
  const double used = used_share(form, samples);
  const double device_s = ratio * form.sample_s * samples / used * wave_factor(form, samples, tiles_scale) *
                          slowdown(form, micro_batch, used);
  const double host_s = std::max(1.0, 0.7 * ratio) * form.launch_s;
  if (host_s <= 0) return device_s;
  const double larger = std::max(device_s, host_s);
  return larger * std::pow(1 + std::pow(std::min(device_s, host_s) / larger, form.launch_power), 1 / form.launch_power);
}

}  // namespace

double forward_compute_s(const ComputeForm& form, int64_t micro_batch) {
  return pass_s(form, micro_batch, 1, 1) + form.copy_s * static_cast<double>(micro_batch);
}

double backward_compute_s(const ComputeForm& form, int64_t micro_batch) {
  return pass_s(form, micro_batch, form.backward_ratio, form.backward_tiles);
}

}  // namespace dsat::bench
