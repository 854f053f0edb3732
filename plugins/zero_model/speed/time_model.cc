// Gauss-Newton finds the most probable constants, a grid search by evidence the scales of residual and noise, and a
// Cholesky factor of the whole covariance answers predictions. Joint draws are in time_draws.cc.
#include "zero_model/speed/time_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace dsat::zero_model {
namespace {

// The evidence chooses from these multiples of the residual's amplitudes and from these noises of a time.
constexpr std::array<double, 4> kScales{0.3, 0.7, 1.5, 3.5};
constexpr std::array<double, 5> kNoises{0.002, 0.005, 0.012, 0.03, 0.08};
constexpr double kTypicalNoise = 0.01;
// Widths of the priors on the logarithms of scales and noise.
constexpr double kScaleWidth = 1.0;
constexpr double kPartWidth = 1.2;
constexpr double kNoiseWidth = 1.0;

double square(double x) { return x * x; }

// The standard deviation of normal numbers about 0, by their median, so that outliers count no more than others.
double usual_size(const Eigen::VectorXd& numbers) {
  constexpr double kOfMedian = 1.4826;
  std::vector<double> sizes(static_cast<size_t>(numbers.size()));
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = std::abs(numbers[static_cast<Eigen::Index>(i)]);
  std::nth_element(sizes.begin(), sizes.begin() + sizes.size() / 2, sizes.end());
  return kOfMedian * sizes[sizes.size() / 2];
}

// The prior of the common scale, of each part's distance from it, and of the noise.
double log_prior(const Eigen::VectorXd& scales, double noise) {
  const double common = scales.array().log().mean();
  const double own = (scales.array().log() - common).square().sum();
  return -0.5 * (square(common / kScaleWidth) + own / square(kPartWidth) +
                 square(std::log(noise / kTypicalNoise) / kNoiseWidth));
}

}  // namespace

TimeModel::TimeModel(const ModelSpace& space, StepPhase phase, Amplitudes amplitudes)
    : space_(space), phase_(phase), kernel_(space.axes(), std::move(amplitudes)) {}

void TimeModel::fit(const std::vector<TimeObservation>& observations, bool tune) {
  sites_.clear();
  loads_.clear();
  measured_ = static_cast<Eigen::Index>(observations.size());
  log_times_.resize(measured_);
  orders_.resize(measured_);
  widened_ = Eigen::VectorXd::Ones(measured_);
  for (const TimeObservation& observation : observations) {
    log_times_[static_cast<Eigen::Index>(sites_.size())] = std::log(observation.time_us);
    orders_[static_cast<Eigen::Index>(sites_.size())] = observation.order;
    sites_.push_back(site_of(observation.point));
    loads_.push_back(load_of(space_, observation.point));
  }
  first_us_ = observations.front().time_us;
  reference_ = loads_.front().micro_batch;
  for (Load& load : loads_) load.reference = reference_;
  fill_residual();
  restart_constants(wave_);
  tune |= scales_.size() == 0 || wave_is_divided();
  set_trend(tune ? Trend{} : trend_);
  if (tune) {
    choose_wave();
    gauss_newton(6);
    choose_trend();
    choose_scales();
    gauss_newton(3);
  } else {
    gauss_newton(8);
  }
  widen_outliers();
  solve();
}

Load TimeModel::load_at(const Point& point) const {
  Load load = load_of(space_, point);
  load.reference = reference_;
  load.wave = wave_.wave;
  return load;
}

void TimeModel::restart_constants(const WaveRange& range) {
  wave_ = range;
  for (Load& load : loads_) load.wave = range.wave;
  prior_ = prior_of(phase_, loads_.front(), first_us_);
  theta_ = prior_.mean;
}

void TimeModel::restart(const WaveRange& range) {
  restart_constants(range);
  scales_ = Eigen::VectorXd::Ones(kernel_.parts());
  noise_ = kTypicalNoise;
}

// Does a measurement lie inside the range that was open when the wave was chosen? If it refutes the chosen size, it
// would look like an outlier.
bool TimeModel::wave_is_divided() const {
  return std::any_of(loads_.begin(), loads_.end(),
                     [this](const Load& load) { return divides(load.micro_batch, wave_); });
}

// The evidence for a size of the waves, with the constants, one scale of all parts and the noise that suit it best.
double TimeModel::evidence_of(const WaveRange& range) {
  restart(range);
  gauss_newton(6);
  return choose_common() + range.log_prior;
}

// Chooses one scale of all parts and the noise. Returns the evidence.
double TimeModel::choose_common() {
  double best = -std::numeric_limits<double>::infinity(), best_scale = 1;
  for (const double scale : kScales) {
    scales_.setConstant(scale);
    for (const double noise : kNoises) {
      const double now = evidence(scales_, noise);
      if (now > best) best = now, best_scale = scale, noise_ = noise;
    }
  }
  scales_.setConstant(best_scale);
  return best;
}

// The ranges that explain the times best at the usual scales and noise. Weighing all ranges in full would take most of
// a fit's time.
std::vector<WaveRange> TimeModel::likeliest_ranges() {
  constexpr size_t kFinalists = 12;
  std::vector<double> measured;
  std::map<int, double> largest;  // by stage
  for (const Load& load : loads_) {
    measured.push_back(load.micro_batch);
    largest[load.stage] = std::max(largest[load.stage], load.micro_batch);
  }
  double least = measured.front();
  for (const auto& [stage, most] : largest) least = std::min(least, most);
  std::vector<std::pair<double, WaveRange>> ranges;
  for (const WaveRange& range : wave_ranges(std::move(measured), least, space_.micro_batches())) {
    restart(range);
    gauss_newton(3);
    ranges.emplace_back(evidence(scales_, noise_) + range.log_prior, range);
  }
  std::stable_sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (ranges.size() > kFinalists) ranges.resize(kFinalists);
  std::vector<WaveRange> finalists;
  for (const auto& [evidence, range] : ranges) finalists.push_back(range);
  return finalists;
}

// Waves have to explain the times clearly better than a smooth curve and its residual do.
void TimeModel::choose_wave() {
  constexpr double kLogPriorOfWaves = -1.5;
  WaveRange chosen;
  if (phase_ != StepPhase::step) {
    const std::vector<WaveRange> ranges = likeliest_ranges();
    double best = ranges.empty() ? 0 : evidence_of({});
    for (const WaveRange& range : ranges) {
      const double now = evidence_of(range) + kLogPriorOfWaves;
      if (now > best) best = now, chosen = range;
    }
  }
  restart(chosen);
}

// Fills each part's covariances between the sites.
void TimeModel::fill_residual() {
  residual_.assign(static_cast<size_t>(kernel_.parts()), Eigen::MatrixXd(measured_, measured_));
  Eigen::VectorXd parts(kernel_.parts());
  for (Eigen::Index i = 0; i < measured_; ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) {
      kernel_.covariances(sites_[static_cast<size_t>(i)], sites_[static_cast<size_t>(j)], parts.data());
      for (size_t p = 0; p < residual_.size(); ++p) {
        residual_[p](i, j) = residual_[p](j, i) = parts[static_cast<Eigen::Index>(p)];
      }
    }
  }
}

void TimeModel::linearise() {
  const Eigen::Index n = static_cast<Eigen::Index>(loads_.size());
  values_.resize(n);
  gradients_.resize(n, theta_.size());
  const Eigen::VectorXd constants = theta_.array().exp();
  for (Eigen::Index i = 0; i < n; ++i) {
    const Load& load = loads_[static_cast<size_t>(i)];
    values_[i] = log_time(phase_, load, constants);
    gradients_.row(i) = log_time_gradient(phase_, load, constants, values_[i]);
  }
}

// The measured log times less those at the prior's mean, to first order in the constants.
Eigen::VectorXd TimeModel::departure() const { return log_times_ - values_ - gradients_ * (prior_.mean - theta_); }

Eigen::MatrixXd TimeModel::covariance(const Eigen::VectorXd& scales, double noise) const {
  const Eigen::MatrixXd scaled = gradients_ * prior_.deviation.asDiagonal();
  Eigen::MatrixXd k = scaled * scaled.transpose();
  for (size_t p = 0; p < residual_.size(); ++p) k += square(scales[static_cast<Eigen::Index>(p)]) * residual_[p];
  k += trend_covariance_;
  k.diagonal() += square(noise) * widened_;
  return k;
}

// Squared misfit of theta: to the measurements, and to its prior.
double TimeModel::misfit(const Eigen::VectorXd& theta, const Eigen::LLT<Eigen::MatrixXd>& rest) const {
  const Eigen::VectorXd gap = log_times_ - log_times_at_sites(theta).col(0);
  return rest.matrixL().solve(gap).squaredNorm() + (theta - prior_.mean).cwiseQuotient(prior_.deviation).squaredNorm();
}

// A step that makes the misfit larger is halved. Where measurements contradict the step time model, whole steps would
// go back and forth for ever.
void TimeModel::gauss_newton(int iterations) {
  constexpr double kLongestStep = 1.0;  // in prior deviations: the linearisation holds no farther
  constexpr int kMostHalvings = 6;
  const Eigen::LLT<Eigen::MatrixXd> rest_llt(rest());
  double now = misfit(theta_, rest_llt);
  for (int i = 0; i < iterations; ++i) {
    linearise();
    const Eigen::LLT<Eigen::MatrixXd> llt(covariance(scales_, noise_));
    const Eigen::VectorXd variance = prior_.deviation.array().square();
    const Eigen::VectorXd aim = prior_.mean + variance.cwiseProduct(gradients_.transpose() * llt.solve(departure()));
    Eigen::VectorXd step = aim - theta_;
    const double longest = step.cwiseQuotient(prior_.deviation).cwiseAbs().maxCoeff();
    if (longest > kLongestStep) step *= kLongestStep / longest;
    double next = misfit(theta_ + step, rest_llt);
    for (int halving = 0; next > now && halving < kMostHalvings; ++halving) {
      step *= 0.5;
      next = misfit(theta_ + step, rest_llt);
    }
    if (!(next < now)) break;
    theta_ += step;
    now = next;
    if (longest < 1e-3) break;
  }
  linearise();
}

double TimeModel::log_likelihood(const Eigen::MatrixXd& covariance) const {
  const Eigen::LLT<Eigen::MatrixXd> llt(covariance);
  if (llt.info() != Eigen::Success) return -std::numeric_limits<double>::infinity();
  const Eigen::VectorXd gap = departure();
  const double fit = gap.dot(llt.solve(gap));
  return -0.5 * (fit + 2 * llt.matrixLLT().diagonal().array().log().sum());
}

double TimeModel::evidence(const Eigen::VectorXd& scales, double noise) const {
  return log_likelihood(covariance(scales, noise)) + log_prior(scales, noise);
}

// Chooses one scale for all parts and the noise, then each part's own scale. From a large start unneeded parts shrink,
// from a small start needed parts grow. The results differ, and the evidence decides.
void TimeModel::choose_scales() {
  double best = -std::numeric_limits<double>::infinity();
  Eigen::VectorXd best_scales = scales_;
  double best_noise = noise_;
  for (const double scale : kScales) {
    double most = -std::numeric_limits<double>::infinity();
    scales_.setConstant(scale);
    for (const double noise : kNoises) {
      const double now = evidence(scales_, noise);
      if (now > most) most = now, noise_ = noise;
    }
    most = choose_parts(most);
    if (most > best) best = most, best_scales = scales_, best_noise = noise_;
  }
  scales_ = best_scales;
  noise_ = best_noise;
}

// Chooses which parts matter (automatic relevance determination: MacKay 1994). Returns the evidence.
double TimeModel::choose_parts(double best) {
  constexpr Eigen::Index kEnough = 6;
  constexpr int kPasses = 4;
  if (measured_ < kEnough) return best;
  for (int pass = 0; pass < kPasses; ++pass) {
    bool changed = false;
    for (Eigen::Index p = 0; p < scales_.size(); ++p) {
      const double before = scales_[p];
      for (const double factor : {0.33, 3.0}) {
        Eigen::VectorXd other = scales_;
        other[p] = before * factor;
        const double now = evidence(other, noise_);
        if (now > best) best = now, scales_ = other, changed = true;
      }
    }
    for (const double noise : kNoises) {
      const double now = evidence(scales_, noise);
      if (now > best) best = now, noise_ = noise, changed = true;
    }
    if (!changed) break;
  }
  return best;
}

void TimeModel::set_trend(const Trend& trend) {
  trend_ = trend;
  trend_covariance_ = covariance_of(trend, orders_);
}

// By evidence, each with the common scale and the noise that suit it best. A few stragglers may look like a trend, so
// the best one has to explain the times better than a steady machine with stragglers does.
void TimeModel::choose_trend() {
  const std::vector<Trend> trends = possible_trends(orders_);
  std::vector<Eigen::MatrixXd> covariances;
  for (const Trend& trend : trends) covariances.push_back(covariance_of(trend, orders_));
  double best = -std::numeric_limits<double>::infinity();
  size_t likeliest = 0;
  for (const double scale : kScales) {
    const Eigen::VectorXd scales = Eigen::VectorXd::Constant(scales_.size(), scale);
    for (const double noise : kNoises) {
      const Eigen::MatrixXd steady = covariance(scales, noise);
      for (size_t i = 0; i < trends.size(); ++i) {
        const double now = log_likelihood(steady + covariances[i]) + log_prior(scales, noise) + trends[i].log_prior;
        if (now > best) best = now, likeliest = i;
      }
    }
  }
  if (trends[likeliest].kind == Trend::Kind::none) return;
  const bool is_steady = evidence_with_stragglers({}) >= evidence_with_stragglers(trends[likeliest]);
  set_trend(is_steady ? Trend{} : trends[likeliest]);
  widened_.setOnes();
  restart(wave_);
  gauss_newton(6);
}

double TimeModel::evidence_with_stragglers(const Trend& trend) {
  set_trend(trend);
  widened_.setOnes();
  restart(wave_);
  gauss_newton(6);
  choose_common();
  widen_outliers();
  return choose_common() + trend.log_prior;
}

// A measurement whose standardised leave-one-out residual is large gets a larger noise. The inverse gives these
// residuals without fitting again (Rasmussen and Williams 2006, equation 5.12).
void TimeModel::widen_outliers() {
  constexpr double kSuspicious = 3.5;
  left_out_ = 0;
  if (measured_ < 4) return;
  const Eigen::LLT<Eigen::MatrixXd> llt(covariance(scales_, noise_));
  const Eigen::MatrixXd inverse = llt.solve(Eigen::MatrixXd::Identity(measured_, measured_));
  const Eigen::VectorXd gap = inverse * departure();
  left_out_ = usual_size(gap.cwiseQuotient(inverse.diagonal()));
  bool any = false;
  for (Eigen::Index i = 0; i < measured_; ++i) {
    const double z = std::abs(gap[i]) / std::sqrt(inverse(i, i));
    if (z < kSuspicious) continue;
    widened_[i] = square(z);
    any = true;
  }
  if (any) gauss_newton(2);
}

void TimeModel::factorise() { factor_ = covariance(scales_, noise_).llt().matrixL(); }

void TimeModel::solve() {
  factorise();
  Eigen::VectorXd gap = departure();
  factor_.triangularView<Eigen::Lower>().solveInPlace(gap);
  factor_.transpose().triangularView<Eigen::Upper>().solveInPlace(gap);
  weights_ = gap;
  const Eigen::VectorXd variance = prior_.deviation.array().square();
  theta_posterior_ = prior_.mean + variance.cwiseProduct(gradients_.transpose() * weights_);
}

TimeModel::Cross TimeModel::cross(const std::vector<Point>& points) const {
  const Eigen::Index count = static_cast<Eigen::Index>(points.size());
  const Eigen::Index n = static_cast<Eigen::Index>(sites_.size());
  Cross cross(static_cast<size_t>(kernel_.parts()), Eigen::MatrixXd(n, count));
  std::vector<double> parts(cross.size());
  for (Eigen::Index c = 0; c < count; ++c) {
    const Site site = site_of(points[static_cast<size_t>(c)]);
    const bool same_arm = c > 0 && points[static_cast<size_t>(c) - 1].arm == site.arm;
    for (Eigen::Index i = 0; i < n; ++i) {
      const Site& other = sites_[static_cast<size_t>(i)];
      kernel_.rest_covariances(other, site, parts.data());
      if (!same_arm) kernel_.axis_covariances(*other.arm, *site.arm, parts.data() + Kernel::kFirstAxis);
      for (size_t p = 0; p < cross.size(); ++p) {
        const bool known = same_arm && p >= static_cast<size_t>(Kernel::kFirstAxis);
        cross[p](i, c) = known ? cross[p](i, c - 1) : parts[p];
      }
    }
  }
  return cross;
}

// The parts are added point by point, since a matrix of each part would only be summed.
Eigen::MatrixXd TimeModel::own_covariance(const std::vector<Point>& points) const {
  const size_t count = points.size();
  std::vector<Site> sites;
  for (const Point& point : points) sites.push_back(site_of(point));
  const Eigen::VectorXd weights = scales_.array().square();
  Eigen::VectorXd parts(kernel_.parts());
  Eigen::MatrixXd own(count, count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      const bool same_arm = j > 0 && sites[j].arm == sites[j - 1].arm;
      kernel_.rest_covariances(sites[i], sites[j], parts.data());
      if (!same_arm) kernel_.axis_covariances(*sites[i].arm, *sites[j].arm, parts.data() + Kernel::kFirstAxis);
      double sum = weights[0] * parts[0];
      for (Eigen::Index p = 1; p < parts.size(); ++p) sum += weights[p] * parts[p];
      own(i, j) = own(j, i) = sum;
    }
  }
  return own;
}

std::vector<Prediction> TimeModel::predict(const std::vector<Point>& points) const {
  const Eigen::Index count = static_cast<Eigen::Index>(points.size());
  const Eigen::VectorXd weights = scales_.array().square();
  const double residual_variance = weights.dot(kernel_.variances());
  Eigen::MatrixXd covariance = weighed(cross(points)), gradients(count, theta_.size());
  Eigen::VectorXd values(count);
  const Eigen::VectorXd constants = theta_.array().exp();
  for (Eigen::Index c = 0; c < count; ++c) {
    const Load load = load_at(points[static_cast<size_t>(c)]);
    values[c] = log_time(phase_, load, constants);
    gradients.row(c) = log_time_gradient(phase_, load, constants, values[c]);
  }
  Eigen::VectorXd means = values + gradients * (theta_posterior_ - theta_);
  means += covariance.transpose() * weights_;
  const Eigen::MatrixXd scaled = gradients * prior_.deviation.asDiagonal();
  covariance += (gradients_ * prior_.deviation.asDiagonal()) * scaled.transpose();
  factor_.triangularView<Eigen::Lower>().solveInPlace(covariance);
  std::vector<Prediction> predictions(points.size());
  for (Eigen::Index c = 0; c < count; ++c) {
    const double before = scaled.row(c).squaredNorm() + residual_variance;
    predictions[static_cast<size_t>(c)] = {means[c], std::max(1e-12, before - covariance.col(c).squaredNorm())};
  }
  return predictions;
}

Eigen::MatrixXd TimeModel::weighed(const Cross& parts) const {
  Eigen::MatrixXd sum = square(scales_[0]) * parts.front();
  for (size_t p = 1; p < parts.size(); ++p) sum += square(scales_[static_cast<Eigen::Index>(p)]) * parts[p];
  return sum;
}

// The step time model's log time of every measured site under each column of theta: sites x columns.
Eigen::MatrixXd TimeModel::log_times_at_sites(const Eigen::MatrixXd& theta) const {
  Eigen::MatrixXd values(measured_, theta.cols());
  for (Eigen::Index c = 0; c < theta.cols(); ++c) {
    const Eigen::VectorXd constants = theta.col(c).array().exp();
    for (Eigen::Index i = 0; i < measured_; ++i) {
      values(i, c) = log_time(phase_, loads_[static_cast<size_t>(i)], constants);
    }
  }
  return values;
}

// What trials of one configuration would differ by: the trend, and the noise.
Eigen::MatrixXd TimeModel::noise_covariance() const {
  Eigen::MatrixXd k = trend_covariance_;
  k.diagonal() += square(noise_) * widened_;
  return k;
}

// The covariance of residual, trend and noise at the measured sites.
Eigen::MatrixXd TimeModel::rest() const { return weighed(residual_) + noise_covariance(); }

}  // namespace dsat::zero_model
