// fit_memory: the most probable unknowns given a prior, measured peaks and one-sided observations.
//
// A measured peak adds a square to the loss. A trial known only as "fitted" or "did not fit" adds the logarithm of a
// normal probability (Tobit). The loss is convex, so Newton's method finds its one minimum. The covariance is the
// inverse of the curvature there.
//
// Sources: Tobin, "Estimation of Relationships for Limited Dependent Variables" (1958), for one-sided observations;
// Nocedal and Wright, "Numerical Optimization", chapter 3, for the line search.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "dsat/base/normal.h"
#include "terms.h"

namespace dsat::cost {
namespace {

// Peaks repeat to the byte on many stacks; caching and fragmentation move them a little.
constexpr double kPriorNoise = 0.001;
constexpr double kPriorNoiseWeight = 4;  // observations that kPriorNoise is worth
// The point at which a device runs out of memory varies between trials. The usable share is the constant part.
constexpr double kCensoredNoise = 0.005;

// A peak is the maximum of several straight lines, one for each moment of a step, and near the ceiling the steepest one
// is the maximum. So a trial counts less the farther it lies below the largest trial of its setup. This is the limit.
constexpr double kFarBelowNoise = 64;

struct Prior {
  Terms mean = Terms::Zero();
  Terms deviation = Terms::Ones();
};

// The sum of squares of all measured peaks, each relative to its peak: u A u - 2 b u + c. It is summed once, so the
// cost of an iteration does not depend on the number of trials.
struct MeasuredPeaks {
  TermsMatrix a = TermsMatrix::Zero();
  Terms b = Terms::Zero();
  double c = 0;
  int count = 0;

  void add(const Terms& x, double residual_at_zero) {
    a += x * x.transpose();
    b -= x * residual_at_zero;
    c += residual_at_zero * residual_at_zero;
    ++count;
  }
  double squares(const Terms& u) const { return std::max(0.0, u.dot(a * u) - 2 * b.dot(u) + c); }
};

// known + x u is above 0 (did not fit) or below 0 (fitted), as a share of the device memory.
struct Bound {
  Terms x;
  double known = 0;
  double sign = 1;  // 1 above, -1 below
};

// Unknowns are in units of their prior's deviation. This keeps the matrix well conditioned for bytes and for factors.
struct Problem {
  Prior prior;
  MeasuredPeaks measured;
  std::vector<Bound> bounds;
  double least_fixed = 0;
};

void check_bytes(const std::optional<double>& bytes, const char* what) {
  if (bytes && (!std::isfinite(*bytes) || *bytes < 0)) {
    throw Error(fmt::format("{} is {:f}; it must be a number that is not negative", what, *bytes));
  }
}

void check(const Inputs& inputs, const std::vector<Observation>& observations) {
  model_state_bytes(inputs.size, Setup());  // throws for an impossible size
  check_bytes(inputs.activation_bytes_at_micro_batch_1, "activation bytes at micro batch 1");
  check_bytes(inputs.device_memory_bytes, "device memory");
  const auto check_interval = [](const std::optional<Interval>& interval, const std::string& what) {
    if (!interval) return;
    check_bytes(interval->value, what.c_str());
    check_bytes(interval->low, (what + ", low").c_str());
    check_bytes(interval->high, (what + ", high").c_str());
  };
  check_interval(inputs.activation_bytes_per_sample, "activation bytes per sample");
  check_interval(inputs.fixed_bytes, "fixed bytes");
  for (const Observation& observation : observations) check_bytes(observation.peak_bytes, "an observed peak");
}

// The memory that priors are shares of.
double scale_of(const Inputs& inputs, const std::vector<Observation>& observations) {
  double scale = inputs.device_memory_bytes.value_or(0);
  if (scale <= 0) {
    scale = model_state_bytes(inputs.size, Setup());
    for (const Observation& observation : observations) scale = std::max(scale, observation.peak_bytes.value_or(0));
  }
  return std::max(scale, 1.0);
}

Prior prior_of(const Inputs& inputs, double scale) {
  Prior prior;
  prior.mean[kFixed] = 0.03 * scale;
  prior.deviation[kFixed] = 0.1 * scale;
  if (inputs.fixed_bytes) {
    const Interval& known = *inputs.fixed_bytes;
    prior.mean[kFixed] = known.value;
    prior.deviation[kFixed] = std::max({known.high - known.low, 0.5 * known.value, 0.003 * scale});
  }
  // With nothing measured, two samples may fit, or twenty, or two hundred.
  prior.mean[kActivation] = 0.05 * scale;
  prior.deviation[kActivation] = 0.25 * scale;
  if (inputs.activation_bytes_per_sample) {
    const Interval& known = *inputs.activation_bytes_per_sample;
    prior.mean[kActivation] = known.value;
    // The prior is wider than the profile's interval, since the profile's trials may be among the observations again.
    prior.deviation[kActivation] = std::max({known.high - known.low, 0.25 * known.value, 1e-6 * scale});
  } else if (inputs.activation_bytes_at_micro_batch_1.value_or(0) > 0) {
    // One forward keeps what backward needs. The peak lies in backward, which adds gradients of activations.
    prior.mean[kActivation] = 1.25 * *inputs.activation_bytes_at_micro_batch_1;
    prior.deviation[kActivation] = 0.5 * *inputs.activation_bytes_at_micro_batch_1;
    if (inputs.recomputes_activations) {
      // Forward leaves the inputs of recomputation. The recomputed activations may be many times larger.
      prior.mean[kActivation] = 6 * *inputs.activation_bytes_at_micro_batch_1;
      prior.deviation[kActivation] = 10 * *inputs.activation_bytes_at_micro_batch_1;
    }
  }
  // Engines round, align and double the documented buffers. Optional buffers are not expected at all.
  prior.mean[kBufferScale] = 1;
  prior.deviation[kBufferScale] = 0.25;
  prior.deviation[kOptionalBufferScale] = 0.15;
  // A driver's context and other processes take a few percent at most.
  prior.mean[kUsableShare] = 1;
  prior.deviation[kUsableShare] = 0.02;
  for (int stage = 0; stage < 4; ++stage) prior.deviation[kStageOffset + stage] = 0.015 * scale;
  return prior;
}

// The largest fitted micro batch of each setup.
class LargestFitted {
 public:
  explicit LargestFitted(const std::vector<Observation>& observations) {
    for (const Observation& observation : observations) {
      if (observation.out_of_memory) continue;
      int64_t& largest = largest_[observation.setup];
      largest = std::max(largest, observation.setup.micro_batch);
    }
  }
  int64_t of(const Setup& setup) const {
    const auto it = largest_.find(setup);
    return it == largest_.end() ? 0 : it->second;
  }

 private:
  std::map<Setup, int64_t, OrderOfSetups> largest_;
};

// The setup that all others are compared to. It is the first with a measured peak, so it stays while a study grows.
std::optional<Setup> reference_of(const std::vector<Observation>& observations) {
  for (const Observation& observation : observations) {
    if (!observation.out_of_memory && observation.peak_bytes) return observation.setup;
  }
  return std::nullopt;
}

// The lower bound of `fixed`. It may be negative: if the optimizer keeps fewer states than the formula says (8 bit, or
// made by the script), measured peaks lie below the formula, and a bound at zero would tilt the line instead.
double least_fixed_bytes(const Inputs& inputs, const std::optional<Setup>& reference) {
  if (!reference) return 0;
  Setup without = *reference;
  without.optimizer = Optimizer::sgd;
  return model_state_bytes(inputs.size, without) - model_state_bytes(inputs.size, *reference);
}

Problem problem_of(const Inputs& inputs, const std::vector<Observation>& observations,
                   const std::optional<Setup>& reference) {
  Problem problem{prior_of(inputs, scale_of(inputs, observations)), {}, {}};
  const Terms& deviation = problem.prior.deviation;
  problem.least_fixed = least_fixed_bytes(inputs, reference) / deviation[kFixed];
  const double device = inputs.device_memory_bytes.value_or(0);
  const LargestFitted largest(observations);
  const auto add_bound = [&](const PeakForm& peak, bool out_of_memory) {
    const PeakForm form = shortage_form(peak, device);
    problem.bounds.push_back(
        {form.coefficients.cwiseProduct(deviation) / device, form.known_bytes / device, out_of_memory ? 1.0 : -1.0});
  };
  for (const Observation& observation : observations) {
    const PeakForm peak = peak_form(inputs.size, observation.setup, reference);
    if (!observation.out_of_memory && observation.peak_bytes) {
      const double bytes = *observation.peak_bytes;
      const auto micro_batch = static_cast<double>(observation.setup.micro_batch);
      const double below = static_cast<double>(largest.of(observation.setup)) / (2 * micro_batch);
      const double factor = std::max(noise_factor(observation.setup), std::min(below * below, kFarBelowNoise));
      const double unit = std::max(bytes, 1.0) * factor;
      problem.measured.add(peak.coefficients.cwiseProduct(deviation) / unit, (peak.known_bytes - bytes) / unit);
      // A peak near the device's memory also shows that this much of it is usable.
      if (device > 0 && bytes > 0.9 * device) add_bound({bytes, Terms::Zero()}, false);
    } else if (device > 0 &&
               !(observation.out_of_memory && largest.of(observation.setup) >= observation.setup.micro_batch)) {
      // If the same or a larger micro batch fitted, the out-of-memory had another cause and is left out.
      add_bound(peak, observation.out_of_memory);
    }
  }
  return problem;
}

struct Point {
  double loss = 0;
  Terms gradient = Terms::Zero();
  TermsMatrix curvature = TermsMatrix::Zero();
};

Point evaluate(const Problem& problem, double noise, const Terms& unknowns) {
  const Terms from_mean = unknowns - problem.prior.mean.cwiseQuotient(problem.prior.deviation);
  const MeasuredPeaks& measured = problem.measured;
  const double weight = 1 / (noise * noise);
  Point point{0.5 * (from_mean.squaredNorm() + weight * measured.squares(unknowns)),
              from_mean + weight * (measured.a * unknowns - measured.b), TermsMatrix::Identity() + weight * measured.a};
  const double sigma = std::max(noise, kCensoredNoise);
  for (const Bound& bound : problem.bounds) {
    const double z = bound.sign * (bound.known + bound.x.dot(unknowns)) / sigma;
    if (z > 9) continue;  // the term is below rounding
    const double mills = normal_hazard(z);
    point.loss -= log_normal_cdf(z);
    point.gradient -= bound.x * (bound.sign * mills / sigma);
    point.curvature += bound.x * bound.x.transpose() * (std::max(0.0, mills * (mills + z)) / (sigma * sigma));
  }
  return point;
}

// Newton's method with backtracking over the unknowns that are not pinned to their bounds.
Terms minimise(const Problem& problem, double noise, const std::vector<int>& pinned, Terms unknowns) {
  for (const int term : pinned) unknowns[term] = term == kFixed ? problem.least_fixed : 0;
  Point point = evaluate(problem, noise, unknowns);
  for (int iteration = 0; iteration < 100; ++iteration) {
    for (const int term : pinned) {
      point.gradient[term] = 0;
      point.curvature.row(term).setZero();
      point.curvature.col(term).setZero();
      point.curvature(term, term) = 1;
    }
    // The loss is convex, so the curvature is positive definite and the step goes downhill. Far from the minimum it may
    // be too long. It is halved until the loss falls by a share of what the slope promises (Armijo).
    const Terms step = -point.curvature.ldlt().solve(point.gradient);
    const double slope = point.gradient.dot(step);
    if (!(slope < -1e-12)) break;
    double length = 1;
    Point next = evaluate(problem, noise, unknowns + step);
    while (!(next.loss <= point.loss + 1e-4 * length * slope) && length > 1e-9) {
      length /= 2;
      next = evaluate(problem, noise, unknowns + length * step);
    }
    if (!(next.loss < point.loss)) break;
    unknowns += length * step;
    point = next;
  }
  return unknowns;
}

// The minimum with `fixed` and `activation` at or above their bounds. The loss is convex, so the minimum is the best
// allowed one of four: with none, one or both of the two terms pinned to its bound.
Terms minimise_within_bounds(const Problem& problem, double noise, const Terms& start) {
  const std::vector<int> choices[] = {{}, {kFixed}, {kActivation}, {kFixed, kActivation}};
  Terms best = Terms::Zero();
  double best_loss = std::numeric_limits<double>::infinity();
  for (const std::vector<int>& pinned : choices) {
    const Terms unknowns = minimise(problem, noise, pinned, start);
    if (unknowns[kFixed] < problem.least_fixed || unknowns[kActivation] < 0) continue;
    const double loss = evaluate(problem, noise, unknowns).loss;
    if (loss < best_loss) {
      best_loss = loss;
      best = unknowns;
    }
    if (pinned.empty()) break;  // a free minimum within the bounds is the minimum
  }
  return best;
}

TermsMatrix covariance_at(const Problem& problem, double noise, const Terms& unknowns) {
  return evaluate(problem, noise, unknowns).curvature.inverse();
}

// The relative deviation of the residuals. The prior guess counts as a few further observations.
double noise_of(const Problem& problem, double noise, const Terms& unknowns) {
  const MeasuredPeaks& measured = problem.measured;
  // The degrees of freedom that the fit uses: the trace of its hat matrix.
  const double used = (covariance_at(problem, noise, unknowns) * measured.a).trace() / (noise * noise);
  const double squares = kPriorNoiseWeight * kPriorNoise * kPriorNoise + measured.squares(unknowns);
  return std::sqrt(squares / (kPriorNoiseWeight + std::max(0.0, measured.count - used)));
}

}  // namespace

Interval fixed_bytes_by_forward(const ModelSize& size, const Setup& setup, double peak_bytes, double activation_bytes) {
  check_bytes(peak_bytes, "the model-information trial's peak");
  check_bytes(activation_bytes, "the model-information trial's activations");
  const double left = std::max(0.0, peak_bytes - forward_bytes(size, setup) - activation_bytes);
  const double layer = size.largest_layer_params * (setup.accumulation_dtype == Precision::fp32 ? 4 : 2);
  return {left + 0.1 * layer, 0.5 * left, left + layer + 0.5 * activation_bytes};
}

MemoryFit fit_memory(const Inputs& inputs, const std::vector<Observation>& observations) {
  check(inputs, observations);
  const std::optional<Setup> reference = reference_of(observations);
  const Problem problem = problem_of(inputs, observations, reference);
  const Terms& deviation = problem.prior.deviation;
  double noise = kPriorNoise;
  Terms unknowns = minimise_within_bounds(problem, noise, problem.prior.mean.cwiseQuotient(deviation));
  for (int round = 0; round < 3; ++round) {
    const double before = noise;
    noise = noise_of(problem, noise, unknowns);
    unknowns = minimise_within_bounds(problem, noise, unknowns);
    if (std::abs(noise - before) < 0.02 * before) break;
  }

  const Terms value = unknowns.cwiseProduct(deviation);
  MemoryFit fit;
  fit.inputs = inputs;
  fit.observations = observations;
  fit.reference = reference;
  fit.fixed_bytes = value[kFixed];
  fit.activation_bytes_per_sample = value[kActivation];
  fit.buffer_scale = value[kBufferScale];
  fit.optional_buffer_scale = value[kOptionalBufferScale];
  for (size_t stage = 0; stage < 4; ++stage) fit.stage_offset_bytes[stage] = value[kStageOffset + int(stage)];
  Eigen::Map<TermsMatrix>(fit.covariance.data()) =
      deviation.asDiagonal() * covariance_at(problem, noise, unknowns) * deviation.asDiagonal();
  // The usable share is at most 1, unless a peak above the device's memory was measured. A trial that just fits is no
  // evidence of more.
  double most_usable = 1;
  fit.relative_noise = noise;
  for (const Observation& observation : observations) {
    if (observation.out_of_memory || !observation.peak_bytes) continue;
    fit.largest_measured_micro_batch = std::max(fit.largest_measured_micro_batch, observation.setup.micro_batch);
    if (inputs.device_memory_bytes.value_or(0) <= 0) continue;
    most_usable = std::max(most_usable, *observation.peak_bytes / *inputs.device_memory_bytes);
  }
  fit.usable_share = std::min(value[kUsableShare], most_usable);
  return fit;
}

}  // namespace dsat::cost
