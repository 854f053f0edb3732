#include "zero_model/speed/speed_model.h"

#include <algorithm>
#include <cmath>

namespace dsat::guided {
namespace {

double square(double x) { return x * x; }

bool is_phase(const std::string& metric) { return metric == "forward" || metric == "backward" || metric == "step"; }

Phase phase_of(const std::string& metric) {
  if (metric == "forward") return Phase::forward;
  if (metric == "backward") return Phase::backward;
  return metric == "step" ? Phase::step : Phase::total;
}

}  // namespace

Amplitudes speed_amplitudes(const std::vector<Knob>& knobs) {
  Amplitudes amplitudes;
  amplitudes.stage = 0.08;
  for (const Knob& knob : knobs) {
    const bool of_default_space =
        knob.key.find("bucket_size") != std::string::npos || knob.key == "zero_optimization.reduce_scatter" ||
        knob.key == "zero_optimization.contiguous_gradients" || knob.key == "zero_optimization.allgather_partitions";
    amplitudes.knobs.push_back(of_default_space ? 0.03 : 0.06);
  }
  amplitudes.curve = 0.04;
  amplitudes.rough = 0.012;
  amplitudes.divisibility = 0.012;
  amplitudes.arm = 0.012;
  amplitudes.together = 0.03;
  return amplitudes;
}

SpeedModel::SpeedModel(const Lattice& lattice, std::string metric, bool maximise)
    : lattice_(lattice), metric_(std::move(metric)), maximise_(maximise) {}

double SpeedModel::goodness_of(double metric) const { return maximise_ ? std::log(metric) : -std::log(metric); }
double SpeedModel::metric(double goodness) const { return std::exp(maximise_ ? goodness : -goodness); }

// What follows from the phases, up to a constant: the share of work done in a second, or less time.
double phase_goodness(const Lattice& lattice, const Point& point, double forward, double backward, double step,
                      bool per_sample) {
  const double latency = lattice.accumulation(point) * (forward + backward) + step;
  return (per_sample ? std::log(lattice.samples_per_step(point)) : 0) - std::log(latency);
}

// Do the phases of every trial make up its metric, to within half a percent?
bool SpeedModel::phases_explain(const std::vector<Measurement>& measurements) {
  constexpr double kWithin = 0.005;
  double sum = 0, squares = 0;
  for (const Measurement& m : measurements) {
    if (!m.forward || !m.backward || !m.step) return false;
    const double gap =
        goodness_of(m.metric) - phase_goodness(lattice_, m.point, *m.forward, *m.backward, *m.step, maximise_);
    sum += gap;
    squares += square(gap);
  }
  const double n = static_cast<double>(measurements.size());
  offset_ = sum / n;
  return squares / n - square(offset_) < square(kWithin);
}

// Time of a micro step, in any unit where the metric has none.
double SpeedModel::time_of(const Measurement& measurement) const {
  const double accumulation = lattice_.accumulation(measurement.point);
  if (is_phase(metric_)) return measurement.metric;
  if (!maximise_) return measurement.metric / accumulation;
  return std::exp(std::log(lattice_.samples_per_step(measurement.point)) - std::log(measurement.metric) + offset_) /
         accumulation;
}

void SpeedModel::fit(const std::vector<Measurement>& measurements, bool tune) {
  const bool phases = !is_phase(metric_) && phases_explain(measurements);
  single_ = phase_of(metric_);
  const std::vector<Phase> wanted =
      phases ? std::vector<Phase>{Phase::forward, Phase::backward, Phase::step} : std::vector<Phase>{single_};
  if (parts_.size() != wanted.size()) {
    parts_.clear();
    for (const Phase phase : wanted) parts_.emplace_back(lattice_, phase, speed_amplitudes(lattice_.knobs()));
  }
  // Throughput counts samples a second; FLOPS_per_gpu has no known scale: the first trial takes a fifth of a second.
  if (!phases) {
    offset_ = 0;
    if (maximise_) {
      offset_ = metric_ == "throughput" ? std::log(1e6) : std::log(2e5) - std::log(time_of(measurements.front()));
    }
  }
  std::vector<PhaseModel::Sample> samples(measurements.size());
  for (size_t p = 0; p < wanted.size(); ++p) {
    for (size_t i = 0; i < samples.size(); ++i) {
      const Measurement& m = measurements[i];
      samples[i] = {m.point, !phases ? time_of(m) : *(p == 0 ? m.forward : p == 1 ? m.backward : m.step)};
    }
    parts_[p].fit(samples, tune);
  }
  // A point that a trial measured: what the parts make of its noise.
  noise_variance_ = parts_.front().noise_variance();
  if (by_phases()) {
    const Measurement& m = measurements.back();
    const double accumulation = lattice_.accumulation(m.point);
    const double latency = accumulation * (*m.forward + *m.backward) + *m.step;
    const double shares[] = {accumulation * *m.forward / latency, accumulation * *m.backward / latency,
                             *m.step / latency};
    noise_variance_ = 0;
    for (size_t i = 0; i < 3; ++i) noise_variance_ += square(shares[i]) * parts_[i].noise_variance();
  }
}

void SpeedModel::expect(const std::vector<Point>& pending) {
  for (PhaseModel& part : parts_) part.expect(pending);
}

// Of log times of the parts: goodness, and each part's share of the time.
double SpeedModel::put_together(const Point& point, const double* log_times, double* shares) const {
  const double accumulation = lattice_.accumulation(point);
  if (!by_phases()) {
    const double per_step = is_phase(metric_) ? 0 : std::log(accumulation);
    const double samples = maximise_ ? std::log(lattice_.samples_per_step(point)) + offset_ : 0;
    shares[0] = 1;
    return samples - per_step - log_times[0];
  }
  for (size_t p = 0; p < 3; ++p) shares[p] = (p < 2 ? accumulation : 1) * std::exp(log_times[p]);
  const double latency = shares[0] + shares[1] + shares[2];
  for (size_t p = 0; p < 3; ++p) shares[p] /= latency;
  return offset_ + (maximise_ ? std::log(lattice_.samples_per_step(point)) : 0) - std::log(latency);
}

std::vector<Belief> SpeedModel::goodness(const std::vector<Point>& points) const {
  std::vector<std::vector<Belief>> parts;
  // All parts have the same sites.
  const PhaseModel::Cross cross = parts_.front().cross(points);
  for (const PhaseModel& part : parts_) parts.push_back(part.predict(points, cross));
  std::vector<Belief> beliefs(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    double log_times[3], shares[3];
    for (size_t p = 0; p < parts.size(); ++p) log_times[p] = parts[p][i].mean;
    beliefs[i].mean = put_together(points[i], log_times, shares);
    for (size_t p = 0; p < parts.size(); ++p) beliefs[i].variance += square(shares[p]) * parts[p][i].variance;
  }
  return beliefs;
}

Eigen::MatrixXd SpeedModel::draw(const std::vector<Point>& points, Eigen::Index draws, Random& random) const {
  const PhaseModel::Cross cross = parts_.front().cross(points), own = parts_.front().own_cross(points);
  std::vector<Eigen::MatrixXd> parts;
  for (const PhaseModel& part : parts_) parts.push_back(part.draw(points, cross, own, draws, random));
  Eigen::MatrixXd all(static_cast<Eigen::Index>(points.size()), draws);
  for (Eigen::Index i = 0; i < all.rows(); ++i) {
    for (Eigen::Index d = 0; d < draws; ++d) {
      double log_times[3], shares[3];
      for (size_t p = 0; p < parts.size(); ++p) log_times[p] = parts[p](i, d);
      all(i, d) = put_together(points[static_cast<size_t>(i)], log_times, shares);
    }
  }
  return all;
}

}  // namespace dsat::guided
