// Predictions from a fit: peaks, the probability that a setup fits, the maximum micro batch, and the next micro batch
// to measure. Units: bytes per device.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cost/posterior/memory_posterior.h"
#include "dsat/cost/memory.h"

namespace dsat::cost {
namespace {

constexpr double kZ90 = 1.6449;  // 5 % of a normal distribution lies above it
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Interval interval_of(double mean, double below, double above) {
  return {std::max(0.0, mean), std::max(0.0, mean - kZ90 * below), std::max(0.0, mean + kZ90 * above)};
}

Interval interval_of(const Believed& believed) {
  const double deviation = std::sqrt(believed.variance);
  return interval_of(believed.mean, deviation, deviation);
}

Believed peak_of(const MemoryFit& fit, const Setup& setup) {
  return fit.posterior->mixture().peak(fit.posterior->point(setup));
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
// one forward pass; without one it dares nothing.
double alone(const MemoryFit& fit, const Interval& ceiling) {
  constexpr double kFarthest = 32;
  const Inputs& inputs = fit.inputs;
  if (inputs.device_memory_bytes && !inputs.activation_bytes_at_micro_batch_1 && !inputs.activation_bytes_per_sample) {
    return kLineBegins;
  }
  return fit.inputs.device_memory_bytes ? std::clamp(kHalfway * ceiling.low, kLineBegins, kFarthest) : kBlind;
}

}  // namespace

Interval fixed_bytes(const MemoryFit& fit) { return interval_of(fit.posterior->mixture().fixed()); }

Interval activation_bytes_per_sample(const MemoryFit& fit) {
  return interval_of(fit.posterior->mixture().activation());
}

// A peak is the maximum of several straight lines, one for each moment of a step. Beyond the measured micro batches a
// steeper line may take over. The steepest has no fixed memory: it goes through zero and lies below the largest
// measured peak. So a slope is at most fixed / largest measured micro batch steeper, and the upper end allows for a
// share of that.
Interval predict_peak(const MemoryFit& fit, const Setup& setup) {
  constexpr double kSteeperLine = 0.25;
  int64_t measured = 0;
  for (const Observation& seen : fit.observations) {
    if (!seen.out_of_memory && seen.peak_bytes) measured = std::max(measured, seen.setup.micro_batch);
  }
  const Believed peak = peak_of(fit, setup);
  double steeper = 0;
  if (measured > 0 && setup.micro_batch > measured) {
    const double beyond = static_cast<double>(setup.micro_batch - measured) / static_cast<double>(measured);
    steeper = kSteeperLine * beyond * std::max(0.0, fit.posterior->mixture().fixed().mean);
  }
  return interval_of(peak.mean, std::sqrt(peak.variance), std::sqrt(peak.variance + steeper * steeper));
}

double probability_of_fitting(const MemoryFit& fit, const Setup& setup) {
  const Seen seen = seen_of(fit, setup);
  if (setup.micro_batch <= seen.fitted) return 1;
  if (seen.smallest_out_of_memory && setup.micro_batch >= *seen.smallest_out_of_memory) return 0;
  if (!fit.inputs.device_memory_bytes) return probability_by_peers(fit, setup);
  return fit.posterior->mixture().probability_of_fitting(fit.posterior->point(setup));
}

Interval micro_batch_ceiling(const MemoryFit& fit, const Setup& setup) {
  const Seen seen = seen_of(fit, setup);
  Interval result{static_cast<double>(seen.fitted), static_cast<double>(seen.fitted), kInfinity};
  if (fit.inputs.device_memory_bytes) {
    const auto at_least = [&](double probability) {
      MemoryPoint point = fit.posterior->point(setup);
      return static_cast<double>(largest([&](int64_t micro_batch) {
        point.micro_batch = micro_batch;
        return fit.posterior->mixture().probability_of_fitting(point) >= probability;
      }));
    };
    result = {at_least(0.5), at_least(0.95), at_least(0.05)};
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
