// The largest of many draws is drawn at once, from the distribution of the maximum, so that a thousand steps of a
// thousand devices cost one number.
#include "survival/drift.h"

#include <algorithm>
#include <cmath>

#include "search/surfaces/draw.h"
#include "survival/whole_study.h"

namespace dsat::bench {
namespace {

constexpr double kThousand = kTrialSteps + 1000;

// The quantile of the largest of `count` uniform draws.
double quantile_of_maximum(Draw& draw, double count) { return std::pow(draw.uniform(1e-12, 1), 1 / count); }

// The standard normal distribution's quantile, from its upper half; Abramowitz and Stegun 26.2.23, off by at
// most 4.5e-4.
double normal_quantile(double quantile) {
  if (quantile < 0.5) return -normal_quantile(1 - quantile);
  const double t = std::sqrt(-2 * std::log(std::max(1 - quantile, 1e-15)));
  return t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

double jittered(double peak_bytes, int steps, Draw& run) {
  constexpr double kDeviation = 0.003;
  return peak_bytes * (1 + kDeviation * normal_quantile(quantile_of_maximum(run, steps)));
}

double fragmented(double peak_bytes, int steps, Draw& job) {
  constexpr double kMostInThousand = 0.02;
  const double way =
      std::log(std::max(static_cast<double>(steps) / kTrialSteps, 1.0)) / std::log(kThousand / kTrialSteps);
  return peak_bytes * (1 + job.uniform(0, kMostInThousand) * way);
}

double leaked(double peak_bytes, double device_bytes, int steps, Draw& job) {
  constexpr double kMostInThousand = 0.02;
  return peak_bytes + device_bytes * job.uniform(0, kMostInThousand) * steps / kThousand;
}

// Lengths are lognormal and cut at the longest that the script takes. Activations follow the longest sample of the
// worst device in the worst step; the rest of the peak stays.
double padded(const Surface& surface, const SurfacePoint& point, double peak_bytes, int steps, Draw& job, Draw& run) {
  constexpr double kDeviation = 0.5;
  SurfacePoint one = point, two = point;
  one.micro_batch = 1;
  two.micro_batch = 2;
  const double of_one = surface.truth(one).peak_bytes;
  const double fixed = std::clamp(2 * of_one - surface.truth(two).peak_bytes, 0.0, peak_bytes);
  const double median = job.uniform(0.2, 0.8);
  const double samples = static_cast<double>(steps) * static_cast<double>(point.micro_batch * surface.job.gpus);
  const double longest = median * std::exp(kDeviation * normal_quantile(quantile_of_maximum(run, samples)));
  return fixed + (peak_bytes - fixed) * std::min(longest, 1.0);
}

}  // namespace

double drifted_peak_bytes(Drift drift, const Surface& surface, const SurfacePoint& point, int steps, uint64_t job,
                          uint64_t run) {
  const double peak_bytes = surface.truth(point).peak_bytes;
  Draw of_job(job, 1), of_run(run, 2);
  switch (drift) {
    case Drift::none:
      return peak_bytes;
    case Drift::jitter:
      return jittered(peak_bytes, steps, of_run);
    case Drift::fragments:
      return fragmented(peak_bytes, steps, of_job);
    case Drift::leak:
      return leaked(peak_bytes, surface.job.device_memory, steps, of_job);
    case Drift::lengths:
      return padded(surface, point, peak_bytes, steps, of_job, of_run);
  }
  return peak_bytes;
}

}  // namespace dsat::bench
