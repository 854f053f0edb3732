// Predictions from a fit: peaks, the probability that a setup fits, the maximum micro batch, and the next micro batch
// to measure. A prediction is a linear form of the fitted unknowns, and its deviation follows from their covariance.
// Units: bytes per device.
#include <algorithm>
#include <cmath>
#include <limits>

#include "dsat/base/normal.h"
#include "dsat/cost/memory.h"
#include "terms.h"

namespace dsat::cost {
namespace {

constexpr double kZ90 = 1.6449;  // 5 % of a normal distribution lies above it
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A normal distribution with two deviations, because a peak can be farther above its line than below it.
struct Normal {
  double mean = 0, below = 0, above = 0;  // `below` and `above`: standard deviations
};

Interval interval_of(const Normal& normal) {
  return {std::max(0.0, normal.mean), std::max(0.0, normal.mean - kZ90 * normal.below),
          std::max(0.0, normal.mean + kZ90 * normal.above)};
}

Normal term(const MemoryFit& fit, Term index, double value) {
  const double deviation = std::sqrt(std::max(0.0, fit.covariance[size_t(index) * (kTerms + 1)]));
  return {value, deviation, deviation};
}

// A peak is the maximum of several straight lines, one for each moment of a step. Beyond the measured micro batches a
// steeper line may take over. This deviation is a share of the extrapolated activations.
constexpr double kExtrapolationNoise = 0.015;
// The steepest possible line has no fixed memory: it goes through zero and lies below the largest measured peak. So a
// slope is at most fixed / largest measured micro batch steeper. This deviation is a share of that difference.
constexpr double kSteeperLine = 0.25;

// The distribution of a linear form of a setup's peak. `scatter_bytes`: the deviation of the peak itself.
Normal believed(const MemoryFit& fit, const PeakForm& form, const Setup& setup, double scatter_bytes) {
  const Eigen::Map<const TermsMatrix> covariance(fit.covariance.data());
  const auto beyond = static_cast<double>(std::max<int64_t>(0, setup.micro_batch - fit.largest_measured_micro_batch));
  const auto measured = static_cast<double>(std::max<int64_t>(1, fit.largest_measured_micro_batch));
  const double steeper =
      fit.largest_measured_micro_batch > 0 ? kSteeperLine * std::max(0.0, fit.fixed_bytes) / measured : 0;
  const double straight = kExtrapolationNoise * fit.activation_bytes_per_sample;
  const double variance =
      std::max(1.0, form.coefficients.dot(covariance * form.coefficients) + scatter_bytes * scatter_bytes);
  return {form.known_bytes + form.coefficients.dot(unknowns(fit)),
          std::sqrt(variance + straight * straight * beyond * beyond),
          std::sqrt(variance + (straight + steeper) * (straight + steeper) * beyond * beyond)};
}

Normal peak_of(const MemoryFit& fit, const Setup& setup) {
  const PeakForm form = peak_form(fit.inputs.size, setup, fit.reference);
  const double mean = form.known_bytes + form.coefficients.dot(unknowns(fit));
  return believed(fit, form, setup, fit.relative_noise * noise_factor(setup) * mean);
}

// Needs a known device memory.
Normal shortage_of(const MemoryFit& fit, const Setup& setup) {
  const double device = *fit.inputs.device_memory_bytes;
  const PeakForm form = shortage_form(peak_form(fit.inputs.size, setup, fit.reference), device);
  return believed(fit, form, setup, fit.relative_noise * device);
}

// Trials of the same setup at any micro batch. A fitted trial outweighs an out-of-memory trial below it.
struct Seen {
  int64_t fitted = 0;                             // the largest that fitted; 0: none
  std::optional<int64_t> smallest_out_of_memory;  // above `fitted`
};

Seen seen_of(const MemoryFit& fit, const Setup& setup) {
  Seen seen;
  for (const Observation& observation : fit.observations) {
    if (observation.out_of_memory || !differ_in_micro_batch_only(observation.setup, setup)) continue;
    seen.fitted = std::max(seen.fitted, observation.setup.micro_batch);
  }
  for (const Observation& observation : fit.observations) {
    const int64_t micro_batch = observation.setup.micro_batch;
    if (!observation.out_of_memory || micro_batch <= seen.fitted) continue;
    if (!differ_in_micro_batch_only(observation.setup, setup)) continue;
    seen.smallest_out_of_memory = std::min(seen.smallest_out_of_memory.value_or(micro_batch), micro_batch);
  }
  return seen;
}

// The probability if the device memory is unknown: from the predicted peaks of trials that fitted or ran out of memory.
double probability_by_peers(const MemoryFit& fit, const Setup& setup) {
  double fitted = 0, out_of_memory = kInfinity;
  for (const Observation& observation : fit.observations) {
    const double peak = peak_of(fit, observation.setup).mean;
    if (observation.out_of_memory) {
      out_of_memory = std::min(out_of_memory, peak);
    } else {
      fitted = std::max(fitted, peak);
    }
  }
  const double peak = peak_of(fit, setup).mean;
  if (peak <= fitted || out_of_memory == kInfinity) return 1;
  return peak >= out_of_memory ? 0 : (out_of_memory - peak) / (out_of_memory - fitted);
}

// The largest micro batch up to the limit for which `fits` holds, or 0. If `fits` holds for one, it holds for all
// smaller ones. Doubling, then bisection: some twenty predictions for a ceiling of a thousand.
template <class Fits>
int64_t largest(const Fits& fits) {
  if (!fits(int64_t{1})) return 0;
  int64_t good = 1, bad = 2;
  while (bad <= kMicroBatchLimit && fits(bad)) {
    good = bad;
    bad *= 2;
  }
  bad = std::min(bad, kMicroBatchLimit + 1);
  while (bad - good > 1) {
    const int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

// The micro batch that surely fits, even if all of a peak but states and buffers grows with the micro batch. Infinity:
// no trial of this setup has a measured peak.
double surely_fits(const MemoryFit& fit, const Setup& setup) {
  const double known = model_state_bytes(fit.inputs.size, setup) + buffer_bytes(fit.inputs.size, setup);
  const double left = *fit.inputs.device_memory_bytes - known;
  double per_sample = kInfinity;
  for (const Observation& seen : fit.observations) {
    if (seen.out_of_memory || !seen.peak_bytes || !differ_in_micro_batch_only(seen.setup, setup)) continue;
    per_sample = std::min(per_sample, (*seen.peak_bytes - known) / static_cast<double>(seen.setup.micro_batch));
  }
  if (per_sample == kInfinity) return kInfinity;
  return left / std::max(1.0, per_sample);
}

// The points at which a profile measures.
constexpr double kLineBegins = 2, kHalfway = 0.5;
constexpr double kBlind = 16;  // if the device memory is unknown: for a single trial, or for the second

// The micro batch of the only trial that a profile can measure. It is limited, because the ceiling is predicted from
// one forward pass.
double alone(const MemoryFit& fit, const Interval& ceiling) {
  constexpr double kFarthest = 32;
  return fit.inputs.device_memory_bytes ? std::clamp(kHalfway * ceiling.low, kLineBegins, kFarthest) : kBlind;
}

}  // namespace

Interval fixed_bytes(const MemoryFit& fit) { return interval_of(term(fit, kFixed, fit.fixed_bytes)); }

Interval activation_bytes_per_sample(const MemoryFit& fit) {
  return interval_of(term(fit, kActivation, fit.activation_bytes_per_sample));
}

Interval predict_peak(const MemoryFit& fit, const Setup& setup) { return interval_of(peak_of(fit, setup)); }

double probability_of_fitting(const MemoryFit& fit, const Setup& setup) {
  const Seen seen = seen_of(fit, setup);
  if (setup.micro_batch <= seen.fitted) return 1;
  if (seen.smallest_out_of_memory && setup.micro_batch >= *seen.smallest_out_of_memory) return 0;
  if (!fit.inputs.device_memory_bytes) return probability_by_peers(fit, setup);
  const Normal shortage = shortage_of(fit, setup);
  const double deviation = shortage.mean < 0 ? shortage.above : shortage.below;
  return normal_cdf(-shortage.mean / deviation);
}

Interval micro_batch_ceiling(const MemoryFit& fit, const Setup& setup) {
  const Seen seen = seen_of(fit, setup);
  Interval result{static_cast<double>(seen.fitted), static_cast<double>(seen.fitted), kInfinity};
  if (fit.inputs.device_memory_bytes) {
    const auto at_most = [&](double deviations) {
      return static_cast<double>(largest([&](int64_t micro_batch) {
        Setup larger = setup;
        larger.micro_batch = micro_batch;
        const Normal shortage = shortage_of(fit, larger);
        return shortage.mean + deviations * (deviations > 0 ? shortage.above : shortage.below) <= 0;
      }));
    };
    result = {at_most(0), at_most(kZ90), at_most(-kZ90)};
  }
  // Observations outweigh predictions.
  const double floor = static_cast<double>(seen.fitted);
  const double ceiling =
      seen.smallest_out_of_memory ? static_cast<double>(*seen.smallest_out_of_memory - 1) : kInfinity;
  for (double* bound : {&result.value, &result.low, &result.high}) *bound = std::clamp(*bound, floor, ceiling);
  return result;
}

int64_t next_to_measure(const MemoryFit& fit, const Setup& setup, int64_t trials_left) {
  constexpr double kLeastSecond = 4, kClose = 0.9;
  // The limit if no trial of this setup has a measured peak, since one forward pass shows little.
  constexpr double kLongestJump = 16;
  const Seen seen = seen_of(fit, setup);
  const auto fitted = static_cast<double>(seen.fitted);
  const Interval ceiling = micro_batch_ceiling(fit, setup);
  double wanted = kLineBegins;
  if (fitted == 0 && seen.smallest_out_of_memory) {
    wanted = static_cast<double>(*seen.smallest_out_of_memory - 1) / 2;
  } else if (fitted == 0) {
    wanted = std::min(trials_left > 1 ? kLineBegins : alone(fit, ceiling), std::max(1.0, ceiling.high));
  } else if (!fit.inputs.device_memory_bytes) {
    wanted = std::min(fitted <= kLineBegins ? kBlind : 2 * fitted, ceiling.high);
  } else {
    const double share = fitted <= kLineBegins ? kHalfway : kClose;
    const double safe = surely_fits(fit, setup);
    wanted = std::min(share * ceiling.value, safe < kInfinity ? safe : ceiling.low);
    wanted = std::max(wanted, std::min(kLeastSecond, ceiling.value));
    if (safe == kInfinity) wanted = std::min(wanted, kLongestJump * fitted);
  }
  return static_cast<int64_t>(std::clamp(wanted, 1.0, static_cast<double>(kMicroBatchLimit)));
}

}  // namespace dsat::cost
