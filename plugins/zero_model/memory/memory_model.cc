#include "zero_model/memory/memory_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "zero_model/gaussian/normal.h"

namespace dsat::guided {
namespace {

// Priors, as shares of the device memory, of what all laws share.
constexpr double kBufferDeviation = 0.3;    // of the scale 1
constexpr double kOptionalDeviation = 0.3;  // of the scale 0
constexpr double kUsable = 0.975;           // share of the device that trials get: contexts, fragmentation
constexpr double kFirstSample = 0.004;      // what the first sample allocates, later ones partly reuse
constexpr double kThresholdWidth = 0.002;   // runs differ: fragmentation
constexpr double kOtherCause = 1e-5;        // of a trial that fitted

constexpr std::array<double, 5> kScales{0.4, 1, 3, 10, 30};
// The prior on the residual's scale is wide: a surprise is explained by a rough memory sooner than by chance.
constexpr std::array<double, 3> kNoises{0.0005, 0.002, 0.008};
constexpr double kTypicalNoise = 0.002;
// Multiples of the activations' deviation: a forward may tell next to nothing of what a step needs.
constexpr std::array<double, 3> kDoubts{1, 8, 64};
constexpr double kDoubtWidth = 1.5;

double square(double x) { return x * x; }

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

MemoryModel::MemoryModel(const Lattice& lattice, const MemoryPrior& prior, const MemoryLaw& law)
    : lattice_(lattice),
      prior_(prior),
      law_(law),
      growth_(lattice.knobs(), law.growth),
      offsets_(lattice.knobs(), law.offsets),
      growth_variance_(growth_.variances().sum()),
      offsets_variance_(offsets_.variances().sum()) {
  // An unknown device is taken for one that holds the partitioned states and 32 samples, give or take as much again.
  const double states = 16 * lattice.parameters() / lattice.data_parallel_size();
  unit_ = prior.device_bytes.value_or(states + 32 * prior.activation_bytes);
  device_deviation_ = prior.device_bytes ? law.device_deviation : 1;
}

MemoryModel::Row MemoryModel::row_of(const Point& point, bool threshold) const {
  Row row;
  row.site = site_of(point);
  row.micro_batch = static_cast<double>(point.micro_batch);
  if (law_.by_formula) {
    row.growth = prior_.activation_bytes * row.micro_batch / unit_;
    row.slope = prior_.activation_deviation * row.micro_batch / unit_;
    row.known = law_.fixed + (point.arm->state_bytes + point.arm->buffer_bytes) / unit_ + row.growth;
  } else {
    const double doublings = std::log2(row.micro_batch);
    row.growth = law_.per_doubling * doublings;
    row.slope = law_.per_doubling_deviation * doublings;
    row.known = law_.fixed + row.growth;
  }
  row.threshold = threshold;
  if (threshold) row.known -= prior_.device_bytes ? kUsable : 1;
  return row;
}

// Of what the formula leaves open.
double MemoryModel::covariance(const Row& a, const Row& b) const {
  const Arm& left = *a.site.arm;
  const Arm& right = *b.site.arm;
  double sum = square(law_.fixed_deviation) + square(doubt_) * a.slope * b.slope;
  if (law_.by_formula) {
    sum += square(kBufferDeviation / unit_) * left.buffer_bytes * right.buffer_bytes;
    sum += square(kOptionalDeviation / unit_) * left.optional_buffer_bytes * right.optional_buffer_bytes;
  }
  if (left.stage == right.stage) {
    sum += square(law_.stage_deviation) + square(law_.stage_slope_deviation) * a.growth * b.growth;
  }
  if (a.micro_batch == 1 && b.micro_batch == 1) sum += square(kFirstSample);
  if (a.threshold && b.threshold) sum += square(device_deviation_);
  return sum;
}

double MemoryModel::residual(const Row& a, const Row& b) const {
  const double share = growth_.of_knobs(*a.site.arm, *b.site.arm) + growth_.of_rest(a.site, b.site);
  return a.growth * b.growth * share + offsets_.of_knobs(*a.site.arm, *b.site.arm) + offsets_.of_rest(a.site, b.site);
}

// Covariances of a point with the observations. Points of one arm are asked about in a row: its knobs' part is kept.
Eigen::VectorXd MemoryModel::cross(const Row& row) const {
  const Eigen::Index n = static_cast<Eigen::Index>(rows_.size());
  if (cached_arm_ != row.site.arm) {
    cached_arm_ = row.site.arm;
    cached_growth_.resize(n);
    cached_offsets_.resize(n);
    for (Eigen::Index i = 0; i < n; ++i) {
      const Arm& other = *rows_[static_cast<size_t>(i)].site.arm;
      cached_growth_[i] = growth_.of_knobs(*row.site.arm, other);
      cached_offsets_[i] = offsets_.of_knobs(*row.site.arm, other);
    }
  }
  Eigen::VectorXd covariances(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const Row& other = rows_[static_cast<size_t>(i)];
    const double share = cached_growth_[i] + growth_.of_rest(row.site, other.site);
    const double offset = cached_offsets_[i] + offsets_.of_rest(row.site, other.site);
    covariances[i] = covariance(row, other) + square(scale_) * (row.growth * other.growth * share + offset);
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
  holes_.clear();
  observed_.clear();
  cached_arm_ = nullptr;
  const Eigen::Index n = static_cast<Eigen::Index>(samples_.size());
  parametric_.resize(n, n);
  residual_.resize(n, n);
  prior_mean_.resize(n);
  slopes_.resize(n);
  doubt_ = 1;
  for (Eigen::Index i = 0; i < n; ++i) {
    const Sample& sample = samples_[static_cast<size_t>(i)];
    rows_.push_back(row_of(sample.point, !sample.peak_bytes));
    const Row& row = rows_.back();
    prior_mean_[i] = row.known;
    observed_.push_back(
        {std::nullopt, !sample.fits, kThresholdWidth, sample.fits ? kOtherCause : law_.failure_elsewhere});
    if (sample.peak_bytes) observed_.back().value = *sample.peak_bytes / unit_;
    slopes_[i] = row.slope;
    for (Eigen::Index j = 0; j <= i; ++j) {
      const Row& other = rows_[static_cast<size_t>(j)];
      parametric_(i, j) = parametric_(j, i) = covariance(row, other);
      residual_(i, j) = residual_(j, i) = residual(row, other);
    }
  }
  log_evidence_ = std::log(law_.prior);
  if (n == 0) return;
  if (tune || !tuned_) {
    choose_scale();
  } else {
    solve(scale_, noise_, doubt);
  }
  tuned_ = true;
  find_holes();
}

void MemoryModel::choose_scale() {
  struct Choice {
    double evidence, scale, noise, doubt;
  };
  const bool favourite = law_.prior == 1;  // the others are looked at more coarsely
  Choice best{-std::numeric_limits<double>::infinity(), 1, kTypicalNoise, 1};
  for (const double doubt : kDoubts) {
    if (doubt != 1 && !law_.by_formula) continue;
    for (const double scale : kScales) {
      for (const double noise : kNoises) {
        if (doubt != 1 && noise != kTypicalNoise) continue;
        if (law_.by_formula && !favourite && (scale < 1 || (doubt != 1 && scale != 1))) continue;
        const double evidence = solve(scale, noise, doubt);
        if (evidence > best.evidence) best = {evidence, scale, noise, doubt};
      }
    }
  }
  solve(best.scale, best.noise, best.doubt);
}

// The posterior of the shortages under this scale; returns its evidence, the priors of what was chosen included.
double MemoryModel::solve(double scale, double noise, double doubt) {
  scale_ = scale;
  noise_ = noise;
  doubt_ = doubt;
  for (Observed& told : observed_) {
    if (told.value) told.deviation = noise;
  }
  posterior_ = infer(parametric_ + (square(doubt) - 1) * slopes_ * slopes_.transpose() + square(scale) * residual_,
                     prior_mean_, observed_);
  const double unlikely =
      square(std::log(scale)) + square(std::log(noise / kTypicalNoise) / 1.5) + square(std::log(doubt) / kDoubtWidth);
  log_evidence_ = std::log(law_.prior) + posterior_.log_evidence - 0.5 * unlikely;
  return log_evidence_;
}

double MemoryModel::probability_of_fitting(const Point& point) const {
  const Row row = row_of(point, true);
  const double unexplained = square(row.growth) * growth_variance_ + offsets_variance_;
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

JointNormal MemoryModel::joint_shortage(const std::vector<Point>& points) const {
  const Eigen::Index count = static_cast<Eigen::Index>(points.size()), n = static_cast<Eigen::Index>(rows_.size());
  std::vector<Row> rows;
  JointNormal joint{Eigen::VectorXd(count), Eigen::MatrixXd(count, count)};
  Eigen::MatrixXd with(n, count);
  for (Eigen::Index i = 0; i < count; ++i) {
    rows.push_back(row_of(points[static_cast<size_t>(i)], true));
    const Row& row = rows.back();
    joint.mean[i] = row.known;
    if (n > 0) with.col(i) = cross(row);
    for (Eigen::Index j = 0; j <= i; ++j) {
      const Row& other = rows[static_cast<size_t>(j)];
      joint.covariance(i, j) = joint.covariance(j, i) = covariance(row, other) + square(scale_) * residual(row, other);
    }
  }
  joint.covariance.diagonal().array() += square(kThresholdWidth);
  if (n == 0) return joint;
  joint.mean += with.transpose() * posterior_.weights;
  Eigen::MatrixXd told = posterior_.root.asDiagonal() * with;
  posterior_.factor.triangularView<Eigen::Lower>().solveInPlace(told);
  joint.covariance -= told.transpose() * told;
  return joint;
}

Eigen::MatrixXd MemoryModel::draw_fits(const std::vector<Point>& points, Eigen::Index draws, Random& random) const {
  Eigen::MatrixXd fits = (guided::draw(joint_shortage(points), draws, random).array() < 0).cast<double>();
  if (holes_.empty()) return fits;
  // Whether a failure's neighbours share its cause: one number a draw, so that nearer ones share it before others.
  Eigen::ArrayXd doubt(fits.rows());
  for (Eigen::Index i = 0; i < doubt.size(); ++i) doubt[i] = doubtful(site_of(points[static_cast<size_t>(i)]));
  for (Eigen::Index d = 0; d < draws; ++d) {
    const double chance = random.uniform();
    fits.col(d).array() *= (chance >= doubt).cast<double>();
  }
  return fits;
}

// A failure that the law cannot explain has a cause that may hold for its neighbours, as far as half the way to the
// next that fitted.
void MemoryModel::find_holes() {
  constexpr double kReach = 0.25, kWay = 0.5;
  holes_.clear();
  for (size_t i = 0; i < rows_.size(); ++i) {
    const double share = posterior_.unexplained[static_cast<Eigen::Index>(i)];
    if (samples_[i].fits || share < 0.01) continue;
    Hole hole{rows_[i].site, share, kReach, kReach};
    for (size_t j = 0; j < rows_.size(); ++j) {
      const double distance = rows_[j].site.log_micro_batch - hole.site.log_micro_batch;
      if (!samples_[j].fits || distance == 0 || rows_[j].site.arm->stage != hole.site.arm->stage) continue;
      double& reach = distance < 0 ? hole.below : hole.above;
      reach = std::min(reach, kWay * std::abs(distance));
    }
    holes_.push_back(hole);
  }
}

double MemoryModel::doubtful(const Site& site) const {
  constexpr double kOtherStage = 0.7;
  double most = 0;
  for (const Hole& hole : holes_) {
    const double distance = site.log_micro_batch - hole.site.log_micro_batch;
    const double near = std::exp(-0.5 * square(distance / (distance < 0 ? hole.below : hole.above)));
    most = std::max(most, hole.share * near * (site.arm->stage == hole.site.arm->stage ? 1 : kOtherStage));
  }
  return most;
}

double MemoryModel::peak_bytes(const Point& point) const {
  const Row row = row_of(point, false);
  const double mean = row.known + (rows_.empty() ? 0 : cross(row).dot(posterior_.weights));
  return std::max(0.0, mean * unit_);
}

}  // namespace dsat::guided
