// Gaussian process over the shortage of memory: the hypothesis gives prior mean and covariance, infer() conditions them
// on the trials, and a failure that the hypothesis cannot explain casts doubt on its neighbours.
#include "cost/posterior/memory_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "cost/posterior/normal.h"

namespace dsat::cost {
namespace {

// Priors, as shares of the device memory, of what all hypotheses share.
constexpr double kBufferDeviation = 0.3;    // of the scale 1
constexpr double kOptionalDeviation = 0.3;  // of the scale 0
constexpr double kFirstSample = 0.004;      // what the first sample allocates, later ones partly reuse
constexpr double kThresholdWidth = 0.002;   // runs differ: fragmentation
constexpr double kOtherCause = 1e-5;        // of a trial that fitted
// An allocator retries once what it holds, fragments included, has reached the limit: the peak was then at most so much
// below it, give or take; other processes can be the cause too.
constexpr double kRetryBelow = 0.1, kRetryWidth = 0.04, kRetryOtherCause = 0.1;

constexpr std::array<double, 5> kScales{0.4, 1, 3, 10, 30};
// The prior on the residual's scale is wide: a surprise is explained by a rough memory sooner than by chance.
constexpr std::array<double, 3> kNoises{0.0005, 0.002, 0.008};
constexpr double kTypicalNoise = 0.002;
// Multiples of the activations' deviation: one forward pass may be no guide to what a training step needs.
constexpr std::array<double, 3> kActivationScales{1, 8, 64};
constexpr double kActivationScaleWidth = 1.5;

double square(double x) { return x * x; }

}  // namespace

MemoryPrior memory_prior(const Inputs& inputs, double largest_peak_bytes) {
  // A training step holds what one forward does not show: gradients of activations and logits, fragments. Where it
  // recomputes, forward leaves only what recomputation starts from, and the rest may be many times larger.
  constexpr double kTraining = 1.2, kTrainingDeviation = 0.6, kRecomputed = 6, kRecomputedDeviation = 10;
  constexpr double kLeastFixedDeviation = 0.003,
                   kGuess = 0.18;          // of the device; the latter is what nothing measured gives
  constexpr double kDeviceOfSamples = 64;  // what nothing measured makes of a device, give or take as many
  MemoryPrior prior;
  if (inputs.device_memory_bytes.value_or(0) > 0) prior.device_bytes = inputs.device_memory_bytes;
  // dsat-trial counts what it allocates, to the byte.
  if (inputs.size.engine() == Engine::by_layer) {
    prior.usable = 1;
    prior.roughness = 0.1;
  }
  const double device = prior.device_bytes.value_or(std::max(largest_peak_bytes, 16e9));
  const double forward = inputs.activation_bytes_at_micro_batch_1.value_or(0);
  const double known = inputs.activation_bytes_per_sample ? inputs.activation_bytes_per_sample->value : forward;
  if (known <= 0) {
    prior.activation_bytes = prior.activation_deviation = device / kDeviceOfSamples;
  } else {
    const bool recomputed = inputs.recomputes_activations && !inputs.activation_bytes_per_sample;
    prior.activation_bytes = (recomputed ? kRecomputed : kTraining) * known;
    prior.activation_deviation = (recomputed ? kRecomputedDeviation : kTrainingDeviation) * known;
  }
  // The deviation is wide, since a profile's trials may be among the observations again. A wide interval says nothing.
  const Interval fixed = inputs.fixed_bytes.value_or(Interval{0, 0, device});
  if (fixed.high - fixed.low < kGuess * device) {
    prior.fixed_bytes = fixed.value;
    prior.fixed_deviation = std::max({fixed.high - fixed.low, 0.5 * fixed.value, kLeastFixedDeviation * device});
  }
  return prior;
}

MemoryModel::MemoryModel(const std::vector<ModelAxis>& axes, const MemoryPrior& prior,
                         const MemoryHypothesis& hypothesis)
    : prior_(prior),
      hypothesis_(hypothesis),
      growth_(axes, hypothesis.growth),
      offsets_(axes, hypothesis.offsets),
      growth_variance_(growth_.variances().sum()),
      offsets_variance_(offsets_.variances().sum()) {
  // An unknown device is taken for one that holds the partitioned states and 32 samples, give or take as much again.
  unit_ = prior.device_bytes.value_or(prior.states_bytes + 32 * prior.activation_bytes);
  if (hypothesis.by_formula && prior.fixed_bytes) {
    hypothesis_.fixed = *prior.fixed_bytes / unit_;
    hypothesis_.fixed_deviation = prior.fixed_deviation / unit_;
  }
  hypothesis_.stage_deviation *= prior.roughness;
  hypothesis_.stage_slope_deviation *= prior.roughness;
  place_device();
}

// What completed shows that an unknown device is larger: it is taken for one that holds twice as much, give or take as
// much again. So the next doubling is always likely until a trial runs out of memory.
void MemoryModel::place_device() {
  constexpr double kTimes = 2;
  usable_ = prior_.usable;
  device_deviation_ = hypothesis_.device_deviation;
  if (prior_.device_bytes) return;
  usable_ = 1;
  for (const MemoryObservation& seen : observations_) {
    if (!seen.fits) continue;
    const double peak = seen.peak_bytes ? *seen.peak_bytes / unit_ : features_of(seen.point, false).known;
    usable_ = std::max(usable_, kTimes * peak);
  }
  device_deviation_ = usable_;
}

MemoryModel::Features MemoryModel::features_of(const MemoryPoint& point, bool threshold) const {
  Features features;
  features.site = site_of(point);
  features.micro_batch = static_cast<double>(point.micro_batch);
  if (hypothesis_.by_formula) {
    features.growth = slope_share_ * prior_.activation_bytes * features.micro_batch / unit_;
    features.slope = slope_deviation_share_ * prior_.activation_deviation * features.micro_batch / unit_;
    const double states = point.arm->state_bytes - (1 - hypothesis_.optimizer_share) * point.arm->optimizer_bytes;
    const double buffers = hypothesis_.has_buffers ? point.arm->buffer_bytes : 0;
    features.known = hypothesis_.fixed + (states + buffers) / unit_ + features.growth;
  } else {
    const double doublings = std::log2(features.micro_batch);
    features.growth = hypothesis_.per_doubling * doublings;
    features.slope = hypothesis_.per_doubling_deviation * doublings;
    features.known = hypothesis_.fixed + features.growth;
  }
  features.threshold = threshold;
  if (threshold) features.known -= usable_;
  return features;
}

// The covariance of what the formula leaves open.
double MemoryModel::covariance(const Features& a, const Features& b) const {
  const MemoryArm& left = *a.site.arm;
  const MemoryArm& right = *b.site.arm;
  double sum = square(hypothesis_.fixed_deviation) + square(activation_scale_) * a.slope * b.slope;
  if (hypothesis_.by_formula) {
    sum += square(hypothesis_.optimizer_deviation / unit_) * left.optimizer_bytes * right.optimizer_bytes;
    if (hypothesis_.has_buffers) {
      sum += square(prior_.roughness * kBufferDeviation / unit_) * left.buffer_bytes * right.buffer_bytes;
    }
    sum += square(kOptionalDeviation / unit_) * left.optional_buffer_bytes * right.optional_buffer_bytes;
  }
  if (left.stage == right.stage) {
    sum += square(hypothesis_.stage_deviation) + square(hypothesis_.stage_slope_deviation) * a.growth * b.growth;
  }
  if (a.micro_batch == 1 && b.micro_batch == 1) sum += square(kFirstSample);
  if (a.threshold && b.threshold) sum += square(device_deviation_);
  return sum;
}

double MemoryModel::residual(const Features& a, const Features& b) const {
  const double share = growth_.of_axes(*a.site.arm, *b.site.arm) + growth_.of_rest(a.site, b.site);
  return a.growth * b.growth * share + offsets_.of_axes(*a.site.arm, *b.site.arm) + offsets_.of_rest(a.site, b.site);
}

// Covariances of a point with the observations. Callers ask about all points of an arm in a row: the part of its axes
// is kept.
Eigen::VectorXd MemoryModel::cross(const Features& features) const {
  const Eigen::Index n = static_cast<Eigen::Index>(features_.size());
  if (cached_arm_ != features.site.arm) {
    cached_arm_ = features.site.arm;
    cached_growth_.resize(n);
    cached_offsets_.resize(n);
    for (Eigen::Index i = 0; i < n; ++i) {
      const MemoryArm& other = *features_[static_cast<size_t>(i)].site.arm;
      cached_growth_[i] = growth_.of_axes(*features.site.arm, other);
      cached_offsets_[i] = offsets_.of_axes(*features.site.arm, other);
    }
  }
  Eigen::VectorXd covariances(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const Features& other = features_[static_cast<size_t>(i)];
    const double share = cached_growth_[i] + growth_.of_rest(features.site, other.site);
    const double offset = cached_offsets_[i] + offsets_.of_rest(features.site, other.site);
    covariances[i] = covariance(features, other) + square(scale_) * (features.growth * other.growth * share + offset);
  }
  return covariances;
}

// One piece of evidence for each observation, in their order; further ones behind them.
std::vector<MemoryModel::Evidence> MemoryModel::evidence_of(const std::vector<MemoryObservation>& observations) const {
  std::vector<Evidence> all;
  std::vector<const MemoryObservation*> measured;
  for (const MemoryObservation& seen : observations) {
    const double other_cause = seen.fits ? kOtherCause : hypothesis_.other_cause;
    Evidence evidence{seen.point, {std::nullopt, !seen.fits, kThresholdWidth, other_cause}, !seen.peak_bytes, 0};
    if (seen.peak_bytes) {
      evidence.sign.value = *seen.peak_bytes / unit_;
      measured.push_back(&seen);
    }
    all.push_back(evidence);
  }
  for (const MemoryObservation& seen : observations) {
    if (!seen.fits && seen.peak_above_bytes) {
      all.push_back({seen.point, {std::nullopt, true, kThresholdWidth, kOtherCause}, false, *seen.peak_above_bytes});
    }
    if (seen.fits && seen.allocator_retries > 0) {
      all.push_back({seen.point, {std::nullopt, true, kRetryWidth, kRetryOtherCause}, true, kRetryBelow * unit_});
    }
  }
  // A point that fitted also shows that the device gave as much as its peak: the highest peaks are lower bounds too.
  constexpr size_t kHighest = 3;
  std::stable_sort(measured.begin(), measured.end(), [](const MemoryObservation* a, const MemoryObservation* b) {
    return *a->peak_bytes > *b->peak_bytes;
  });
  for (size_t i = 0; i < std::min(kHighest, measured.size()); ++i) {
    all.push_back({measured[i]->point, {std::nullopt, false, kThresholdWidth, kOtherCause}, true, 0});
  }
  return all;
}

// One forward pass may show far more than a training step needs a sample. No slope is larger than what completed
// allows. The lower this bound, the less the forward counts. From half of its slope on it does not count, and all
// slopes below the bound are about equally likely. The residual is a share of the slope and shrinks with it.
void MemoryModel::bound_slope() {
  constexpr double kContradicts = 0.5;              // a bound at this share of the prior: the prior does not count
  constexpr double kMean = 0.4, kDeviation = 1.25;  // of equally likely slopes, in units of the bound's
  double bound = 1;
  for (const MemoryObservation& observation : observations_) {
    if (!observation.fits || (!observation.peak_bytes && !prior_.device_bytes)) continue;
    const double peak = observation.peak_bytes.value_or(unit_);
    const double expected = prior_.activation_bytes * static_cast<double>(observation.point.micro_batch);
    bound = std::min(bound, peak / expected);
  }
  const double contradicted = std::min(1.0, (1 - bound) / kContradicts);
  slope_share_ = bound * (1 - contradicted * (1 - kMean));
  slope_deviation_share_ = bound * (1 + contradicted * (kDeviation - 1));
}

// The peak of a small micro batch may lie outside forward and backward, in the optimizer's step: it says less about a
// line than those of larger ones, and nothing that matters near the ceiling.
void MemoryModel::widen_small() {
  constexpr double kPerDoubling = 0.01;
  double largest = 1;
  for (size_t i = 0; i < features_.size(); ++i) {
    if (shortages_[i].value) largest = std::max(largest, features_[i].micro_batch);
  }
  widening_.assign(features_.size(), 0);
  for (size_t i = 0; i < features_.size(); ++i) {
    widening_[i] = kPerDoubling * std::max(0.0, std::log2(largest / features_[i].micro_batch) - 1);
  }
}

// Prior means and covariances of the evidence, at the activation scale 1.
void MemoryModel::fill(const std::vector<Evidence>& evidence) {
  features_.clear();
  shortages_.clear();
  cached_arm_ = nullptr;
  activation_scale_ = 1;
  const Eigen::Index n = static_cast<Eigen::Index>(evidence.size());
  parametric_.resize(n, n);
  residual_.resize(n, n);
  prior_mean_.resize(n);
  slopes_.resize(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const Evidence& one = evidence[static_cast<size_t>(i)];
    features_.push_back(features_of(one.point, one.threshold));
    const Features& features = features_.back();
    prior_mean_[i] = features.known + (one.threshold ? one.bytes : -one.bytes) / unit_;
    shortages_.push_back(one.sign);
    slopes_[i] = features.slope;
    for (Eigen::Index j = 0; j <= i; ++j) {
      const Features& other = features_[static_cast<size_t>(j)];
      parametric_(i, j) = parametric_(j, i) = covariance(features, other);
      residual_(i, j) = residual_(j, i) = residual(features, other);
    }
  }
}

void MemoryModel::fit(const std::vector<MemoryObservation>& observations, bool tune) {
  const double activation_scale = activation_scale_;
  observations_ = observations;
  bound_slope();
  place_device();
  fill(evidence_of(observations));
  widen_small();
  unexplained_failures_.clear();
  log_evidence_ = std::log(hypothesis_.prior);
  if (observations_.empty()) return;
  if (tune || !tuned_) {
    choose_scales();
  } else {
    solve(scale_ / prior_.roughness, noise_ / prior_.roughness, activation_scale);
  }
  tuned_ = true;
  find_unexplained_failures();
}

// Scales and noise with the largest evidence on a grid. Only the favourite hypothesis is worth the whole grid.
void MemoryModel::choose_scales() {
  struct Hyperparameters {
    double evidence, scale, noise, activation_scale;
  };
  const bool favourite = hypothesis_.prior == 1;
  // Only measured peaks have noise.
  const bool noisy = std::any_of(shortages_.begin(), shortages_.end(),
                                 [](const auto& shortage) { return shortage.value.has_value(); });
  Hyperparameters best{-std::numeric_limits<double>::infinity(), 1, kTypicalNoise, 1};
  for (const double activation_scale : kActivationScales) {
    if (activation_scale != 1 && !hypothesis_.by_formula) continue;
    for (const double scale : kScales) {
      for (const double noise : kNoises) {
        if ((activation_scale != 1 || !noisy) && noise != kTypicalNoise) continue;
        if (hypothesis_.by_formula && !favourite && (scale < 1 || (activation_scale != 1 && scale != 1))) continue;
        const double evidence = solve(scale, noise, activation_scale);
        if (evidence > best.evidence) best = {evidence, scale, noise, activation_scale};
      }
    }
  }
  solve(best.scale, best.noise, best.activation_scale);
}

// The posterior of the shortages under these scales. Returns its log evidence, the priors of the scales included.
double MemoryModel::solve(double scale, double noise, double activation_scale) {
  scale_ = prior_.roughness * scale;
  noise_ = prior_.roughness * noise;
  activation_scale_ = activation_scale;
  for (size_t i = 0; i < shortages_.size(); ++i) {
    if (shortages_[i].value)
      shortages_[i].deviation = std::sqrt(square(noise_) + square(prior_.roughness * widening_[i]));
  }
  posterior_ =
      infer(parametric_ + (square(activation_scale) - 1) * slopes_ * slopes_.transpose() + square(scale_) * residual_,
            prior_mean_, shortages_);
  const double unlikely = square(std::log(scale)) + square(std::log(noise / kTypicalNoise) / 1.5) +
                          square(std::log(activation_scale) / kActivationScaleWidth);
  log_evidence_ = std::log(hypothesis_.prior) + posterior_.log_evidence - 0.5 * unlikely;
  return log_evidence_;
}

// A variable by its prior and its covariances with the observations, in units.
Believed MemoryModel::believed(double prior_mean, double prior_variance, const Eigen::VectorXd& with) const {
  if (features_.empty()) return {prior_mean, prior_variance};
  Eigen::VectorXd explained = posterior_.root.cwiseProduct(with);
  posterior_.factor.triangularView<Eigen::Lower>().solveInPlace(explained);
  return {prior_mean + with.dot(posterior_.weights), std::max(0.0, prior_variance - explained.squaredNorm())};
}

Believed MemoryModel::at(const Features& features) const {
  const double unexplained = square(features.growth) * growth_variance_ + offsets_variance_;
  return believed(features.known, covariance(features, features) + square(scale_) * unexplained, cross(features));
}

double MemoryModel::probability_of_fitting(const MemoryPoint& point) const {
  const Features features = features_of(point, true);
  const Believed shortage = at(features);
  const double deviation = std::sqrt(shortage.variance + square(kThresholdWidth));
  return normal_cdf(-shortage.mean / deviation) * (1 - shared_failure_probability(features.site));
}

Believed MemoryModel::peak(const MemoryPoint& point) const {
  const Believed share = at(features_of(point, false));
  return {unit_ * share.mean, square(unit_) * (share.variance + square(noise_))};
}

Believed MemoryModel::fixed() const {
  const double variance = square(hypothesis_.fixed_deviation);
  const auto n = static_cast<Eigen::Index>(features_.size());
  const Believed share = believed(hypothesis_.fixed, variance, Eigen::VectorXd::Constant(n, variance));
  return {unit_ * share.mean, square(unit_) * share.variance};
}

Believed MemoryModel::activation() const {
  const double mean = slope_share_ * prior_.activation_bytes;
  const double deviation = activation_scale_ * slope_deviation_share_ * prior_.activation_deviation / unit_;
  const Believed share = believed(mean / unit_, square(deviation), deviation * activation_scale_ * slopes_);
  return {unit_ * share.mean, square(unit_) * share.variance};
}

JointNormal MemoryModel::joint_shortage(const std::vector<MemoryPoint>& points) const {
  const Eigen::Index count = static_cast<Eigen::Index>(points.size()), n = static_cast<Eigen::Index>(features_.size());
  std::vector<Features> all;
  JointNormal joint{Eigen::VectorXd(count), Eigen::MatrixXd(count, count)};
  Eigen::MatrixXd with(n, count);
  for (Eigen::Index i = 0; i < count; ++i) {
    all.push_back(features_of(points[static_cast<size_t>(i)], true));
    const Features& features = all.back();
    joint.mean[i] = features.known;
    if (n > 0) with.col(i) = cross(features);
    for (Eigen::Index j = 0; j <= i; ++j) {
      const Features& other = all[static_cast<size_t>(j)];
      joint.covariance(i, j) = joint.covariance(j, i) =
          covariance(features, other) + square(scale_) * residual(features, other);
    }
  }
  joint.covariance.diagonal().array() += square(kThresholdWidth);
  if (n == 0) return joint;
  joint.mean += with.transpose() * posterior_.weights;
  Eigen::MatrixXd explained = posterior_.root.asDiagonal() * with;
  posterior_.factor.triangularView<Eigen::Lower>().solveInPlace(explained);
  joint.covariance -= explained.transpose() * explained;
  return joint;
}

Eigen::MatrixXd MemoryModel::draw_fits(const std::vector<MemoryPoint>& points, Eigen::Index draws,
                                       Random& random) const {
  Eigen::MatrixXd fits = (cost::draw(joint_shortage(points), draws, random).array() < 0).cast<double>();
  if (unexplained_failures_.empty()) return fits;
  // One random number a draw decides how far an unexplained failure reaches: nearer points share it before others do.
  Eigen::ArrayXd shared(fits.rows());
  for (Eigen::Index i = 0; i < shared.size(); ++i) {
    shared[i] = shared_failure_probability(site_of(points[static_cast<size_t>(i)]));
  }
  for (Eigen::Index d = 0; d < draws; ++d) {
    const double chance = random.uniform();
    fits.col(d).array() *= (chance >= shared).cast<double>();
  }
  return fits;
}

// The unknown cause of such a failure may hold for its neighbours, as far as half the way to the next that fitted.
void MemoryModel::find_unexplained_failures() {
  constexpr double kReach = 0.25, kWay = 0.5, kLeast = 0.01;
  unexplained_failures_.clear();
  for (size_t i = 0; i < observations_.size(); ++i) {
    const double probability = posterior_.unexplained[static_cast<Eigen::Index>(i)];
    if (observations_[i].fits || probability < kLeast) continue;
    UnexplainedFailure failure{features_[i].site, probability, kReach, kReach};
    for (size_t j = 0; j < observations_.size(); ++j) {
      const double distance = features_[j].site.log_micro_batch - failure.site.log_micro_batch;
      if (!observations_[j].fits || distance == 0 || features_[j].site.arm->stage != failure.site.arm->stage) continue;
      double& reach = distance < 0 ? failure.below : failure.above;
      reach = std::min(reach, kWay * std::abs(distance));
    }
    unexplained_failures_.push_back(failure);
  }
}

double MemoryModel::shared_failure_probability(const Site& site) const {
  // A cause that comes with large buckets says little of arms with small ones.
  constexpr double kOtherStage = 0.7, kLeaner = 0.3, kClearly = 0.02;
  double most = 0;
  for (const UnexplainedFailure& failure : unexplained_failures_) {
    const double distance = site.log_micro_batch - failure.site.log_micro_batch;
    const double near = std::exp(-0.5 * square(distance / (distance < 0 ? failure.below : failure.above)));
    const double stage = site.arm->stage == failure.site.arm->stage ? 1 : kOtherStage;
    const bool leaner = failure.site.arm->buffer_bytes - site.arm->buffer_bytes > kClearly * unit_;
    most = std::max(most, failure.probability * near * stage * (leaner ? kLeaner : 1));
  }
  return most;
}

}  // namespace dsat::cost
