#include "memory_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "normal.h"

namespace dsat::guided {
namespace {

// Priors, as shares of the device memory.
constexpr double kFixed = 0.03, kFixedDeviation = 0.1;
constexpr double kStageDeviation = 0.02;       // of an offset
constexpr double kStageSlopeDeviation = 0.03;  // of the activations
constexpr double kBufferDeviation = 0.3;       // of the scale 1
constexpr double kOptionalDeviation = 0.3;     // of the scale 0
constexpr double kUsable = 0.975;              // share of the device that trials get: contexts, fragmentation
constexpr double kUsableDeviation = 0.018;
constexpr double kFirstSample = 0.004;     // what the first sample allocates, later ones partly reuse
constexpr double kThresholdWidth = 0.002;  // runs differ: fragmentation
constexpr double kOtherCause = 1e-5;       // of an out-of-memory trial, or of one that fitted

constexpr std::array<double, 5> kScales{0.4, 1, 3, 10, 30};
// The prior on the residual's scale is wide: a surprise is explained by a rough memory sooner than by chance.
constexpr std::array<double, 3> kNoises{0.0005, 0.002, 0.008};
constexpr double kTypicalNoise = 0.002;
// Multiples of the activations' deviation: a forward may tell next to nothing of what a step needs.
constexpr std::array<double, 3> kDoubts{1, 8, 64};
constexpr double kDoubtWidth = 1.5;

double square(double x) { return x * x; }

// Does the formula for memory read this key?
bool known_to_formula(const std::string& key) {
  return key.find("bucket_size") != std::string::npos || key == "zero_optimization.overlap_comm" ||
         key.find("offload") != std::string::npos;
}

Amplitudes of_activations(const std::vector<Knob>& knobs) {
  Amplitudes amplitudes;
  for (const Knob& knob : knobs) {
    const bool of_default_space = knob.key.rfind("zero_optimization.", 0) == 0;
    const bool fragments = knob.key == "zero_optimization.contiguous_gradients";
    amplitudes.knobs.push_back(fragments ? 0.03 : of_default_space || known_to_formula(knob.key) ? 0.002 : 0.15);
  }
  amplitudes.curve = 0.015;
  amplitudes.rough = 0.003;
  amplitudes.divisibility = 0.002;
  return amplitudes;
}

Amplitudes of_offsets(const std::vector<Knob>& knobs) {
  Amplitudes amplitudes;
  for (const Knob& knob : knobs) amplitudes.knobs.push_back(known_to_formula(knob.key) ? 0.006 : 0.008);
  amplitudes.stage = 0.003;
  amplitudes.curve = 0.01;  // memory that grows in no proportion to the micro batch
  amplitudes.arm = 0.002;
  return amplitudes;
}

double largest_known_peak(const Study& study) {
  double largest = 0;
  for (const Json& observation : study.observations) {
    const Json peak = observation.value("peak_bytes", Json());
    if (peak.is_number()) largest = std::max(largest, peak.get<double>());
  }
  return largest;
}

}  // namespace

MemoryPrior memory_prior(const Study& study) {
  MemoryPrior prior;
  if (study.device_memory_bytes) prior.device_bytes = static_cast<double>(*study.device_memory_bytes);
  if (study.profile.is_object()) {
    const cost::Inputs inputs = cost::inputs_from_profile(study.profile);
    if (!prior.device_bytes) prior.device_bytes = inputs.device_memory_bytes;
    if (inputs.activation_bytes_per_sample) prior.activation_bytes = inputs.activation_bytes_per_sample->value;
  }
  if (prior.activation_bytes <= 0) {
    const double around = prior.device_bytes.value_or(std::max(largest_known_peak(study), 16e9));
    prior.activation_bytes = around / 64;
    prior.activation_deviation = around / 64;
  } else {
    prior.activation_deviation = 0.4 * prior.activation_bytes;
  }
  return prior;
}

MemoryModel::MemoryModel(const Lattice& lattice, const MemoryPrior& prior)
    : lattice_(lattice),
      prior_(prior),
      activations_(lattice.knobs(), of_activations(lattice.knobs())),
      offsets_(lattice.knobs(), of_offsets(lattice.knobs())),
      activations_variance_(activations_.variances().sum()),
      offsets_variance_(offsets_.variances().sum()) {
  // An unknown device is taken for one that holds the partitioned states and 32 samples, give or take as much again.
  const double states = 16 * lattice.parameters() / lattice.data_parallel_size();
  unit_ = prior.device_bytes.value_or(states + 32 * prior.activation_bytes);
  device_deviation_ = prior.device_bytes ? kUsableDeviation : 1;
}

MemoryModel::Row MemoryModel::row_of(const Point& point, bool threshold) const {
  Row row;
  row.site = site_of(point);
  row.micro_batch = static_cast<double>(point.micro_batch);
  row.activation = prior_.activation_bytes * row.micro_batch / unit_;
  row.known = kFixed + (point.arm->state_bytes + point.arm->buffer_bytes) / unit_ + row.activation;
  row.threshold = threshold;
  if (threshold) row.known -= prior_.device_bytes ? kUsable : 1;
  return row;
}

// Of what the formula leaves open.
double MemoryModel::covariance(const Row& a, const Row& b) const {
  const Arm& left = *a.site.arm;
  const Arm& right = *b.site.arm;
  double sum = square(kFixedDeviation);
  sum += square(doubt_ * prior_.activation_deviation / unit_) * a.micro_batch * b.micro_batch;
  sum += square(kBufferDeviation / unit_) * left.buffer_bytes * right.buffer_bytes;
  sum += square(kOptionalDeviation / unit_) * left.optional_buffer_bytes * right.optional_buffer_bytes;
  if (left.stage == right.stage) {
    sum += square(kStageDeviation) + square(kStageSlopeDeviation) * a.activation * b.activation;
  }
  if (a.micro_batch == 1 && b.micro_batch == 1) sum += square(kFirstSample);
  if (a.threshold && b.threshold) sum += square(device_deviation_);
  return sum;
}

double MemoryModel::residual(const Row& a, const Row& b) const {
  const double share = activations_.of_knobs(*a.site.arm, *b.site.arm) + activations_.of_rest(a.site, b.site);
  return a.activation * b.activation * share + offsets_.of_knobs(*a.site.arm, *b.site.arm) +
         offsets_.of_rest(a.site, b.site);
}

// Covariances of a point with the observations. Points of one arm are asked about in a row: its knobs' part is kept.
Eigen::VectorXd MemoryModel::cross(const Row& row) const {
  const Eigen::Index n = static_cast<Eigen::Index>(rows_.size());
  if (cached_arm_ != row.site.arm) {
    cached_arm_ = row.site.arm;
    cached_activations_.resize(n);
    cached_offsets_.resize(n);
    for (Eigen::Index i = 0; i < n; ++i) {
      const Arm& other = *rows_[static_cast<size_t>(i)].site.arm;
      cached_activations_[i] = activations_.of_knobs(*row.site.arm, other);
      cached_offsets_[i] = offsets_.of_knobs(*row.site.arm, other);
    }
  }
  Eigen::VectorXd covariances(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const Row& other = rows_[static_cast<size_t>(i)];
    const double share = cached_activations_[i] + activations_.of_rest(row.site, other.site);
    const double offset = cached_offsets_[i] + offsets_.of_rest(row.site, other.site);
    covariances[i] = covariance(row, other) + square(scale_) * (row.activation * other.activation * share + offset);
  }
  return covariances;
}

// The highest peaks also say that the device gave so much: each fitted.
void MemoryModel::add_bounds() {
  constexpr size_t kHighest = 3;
  std::vector<Sample> measured;
  for (const Sample& sample : samples_) {
    if (sample.peak_bytes) measured.push_back(sample);
  }
  std::stable_sort(measured.begin(), measured.end(),
                   [](const Sample& a, const Sample& b) { return *a.peak_bytes > *b.peak_bytes; });
  for (size_t i = 0; i < std::min(kHighest, measured.size()); ++i) {
    samples_.push_back({measured[i].point, true, std::nullopt});
  }
}

void MemoryModel::fit(const std::vector<Sample>& observed, bool tune) {
  const double doubt = doubt_;
  samples_ = observed;
  add_bounds();
  rows_.clear();
  observed_.clear();
  cached_arm_ = nullptr;
  const Eigen::Index n = static_cast<Eigen::Index>(samples_.size());
  parametric_.resize(n, n);
  residual_.resize(n, n);
  prior_mean_.resize(n);
  micro_batches_.resize(n);
  doubt_ = 1;
  for (Eigen::Index i = 0; i < n; ++i) {
    const Sample& sample = samples_[static_cast<size_t>(i)];
    rows_.push_back(row_of(sample.point, !sample.peak_bytes));
    const Row& row = rows_.back();
    prior_mean_[i] = row.known;
    observed_.push_back({std::nullopt, !sample.fits, kThresholdWidth});
    if (sample.peak_bytes) observed_.back().value = *sample.peak_bytes / unit_;
    micro_batches_[i] = row.micro_batch;
    for (Eigen::Index j = 0; j <= i; ++j) {
      const Row& other = rows_[static_cast<size_t>(j)];
      parametric_(i, j) = parametric_(j, i) = covariance(row, other);
      residual_(i, j) = residual_(j, i) = residual(row, other);
    }
  }
  if (n == 0) return;
  if (tune || !tuned_) {
    choose_scale();
  } else {
    solve(scale_, noise_, doubt);
  }
  tuned_ = true;
}

void MemoryModel::choose_scale() {
  struct Choice {
    double evidence, scale, noise, doubt;
  };
  Choice best{-std::numeric_limits<double>::infinity(), 1, kTypicalNoise, 1};
  for (const double doubt : kDoubts) {
    for (const double scale : kScales) {
      for (const double noise : kNoises) {
        if (doubt != 1 && noise != kTypicalNoise) continue;
        const double prior = square(std::log(scale)) + square(std::log(noise / kTypicalNoise) / 1.5) +
                             square(std::log(doubt) / kDoubtWidth);
        const double evidence = solve(scale, noise, doubt) - 0.5 * prior;
        if (evidence > best.evidence) best = {evidence, scale, noise, doubt};
      }
    }
  }
  solve(best.scale, best.noise, best.doubt);
}

// The posterior of the shortages under this scale; returns its evidence.
double MemoryModel::solve(double scale, double noise, double doubt) {
  scale_ = scale;
  noise_ = noise;
  doubt_ = doubt;
  for (Observed& told : observed_) {
    if (told.value) told.deviation = noise;
  }
  const Eigen::VectorXd line = prior_.activation_deviation / unit_ * micro_batches_;
  posterior_ = infer(parametric_ + (square(doubt) - 1) * line * line.transpose() + square(scale) * residual_,
                     prior_mean_, observed_, kOtherCause);
  return posterior_.log_evidence;
}

double MemoryModel::probability_of_fitting(const Point& point) const {
  const Row row = row_of(point, true);
  const double unexplained = square(row.activation) * activations_variance_ + offsets_variance_;
  double mean = row.known, variance = covariance(row, row) + square(scale_) * unexplained;
  const Eigen::Index n = static_cast<Eigen::Index>(rows_.size());
  if (n > 0) {
    const Eigen::VectorXd with = cross(row);
    mean += with.dot(posterior_.weights);
    Eigen::VectorXd t = posterior_.root.cwiseProduct(with);
    posterior_.factor.triangularView<Eigen::Lower>().solveInPlace(t);
    variance -= t.squaredNorm();
  }
  const double deviation = std::sqrt(std::max(variance, 0.0) + square(kThresholdWidth));
  return normal_cdf(-mean / deviation) * (1 - doubtful(row.site));
}

// A failure that the formula cannot explain has a cause that may hold for its neighbours.
double MemoryModel::doubtful(const Site& site) const {
  constexpr double kReach = 0.25;  // of log(micro batch)
  constexpr double kOtherStage = 0.7;
  double most = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const double share = posterior_.unexplained[static_cast<Eigen::Index>(i)];
    if (samples_[i].fits || share < 0.01) continue;
    const double distance = (site.log_micro_batch - rows_[i].site.log_micro_batch) / kReach;
    const double near =
        std::exp(-0.5 * square(distance)) * (site.arm->stage == rows_[i].site.arm->stage ? 1 : kOtherStage);
    most = std::max(most, share * near);
  }
  return most;
}

double MemoryModel::peak_bytes(const Point& point) const {
  const Row row = row_of(point, false);
  const double mean = row.known + (rows_.empty() ? 0 : cross(row).dot(posterior_.weights));
  return std::max(0.0, mean * unit_);
}

}  // namespace dsat::guided
