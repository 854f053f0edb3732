// Fits one phase model for each of forward, backward and step where these make up the metric, else one for the whole,
// and turns predicted log times into the objective. Variances combine to first order, by each phase's share of the
// time.
#include "zero_model/speed/speed_model.h"

#include <algorithm>
#include <cmath>

namespace dsat::zero_model {
namespace {

double square(double x) { return x * x; }

bool is_phase(const std::string& metric) { return metric == "forward" || metric == "backward" || metric == "step"; }

StepPhase phase_of(const std::string& metric) {
  if (metric == "forward") return StepPhase::forward;
  if (metric == "backward") return StepPhase::backward;
  return metric == "step" ? StepPhase::step : StepPhase::total;
}

}  // namespace

Amplitudes speed_amplitudes(const std::vector<ModelAxis>& axes) {
  Amplitudes amplitudes;
  amplitudes.stage = 0.08;
  for (const ModelAxis& axis : axes) {
    const bool of_default_space =
        axis.key.find("bucket_size") != std::string::npos || axis.key == "zero_optimization.reduce_scatter" ||
        axis.key == "zero_optimization.contiguous_gradients" || axis.key == "zero_optimization.allgather_partitions" ||
        axis.key == "zero_optimization.sub_group_size" || axis.key.rfind("zero_optimization.stage3_", 0) == 0;
    amplitudes.axes.push_back(of_default_space ? 0.03 : 0.06);
  }
  amplitudes.curve = 0.04;
  amplitudes.rough = 0.012;
  amplitudes.divisibility = 0.012;
  amplitudes.arm = 0.012;
  amplitudes.interaction = 0.03;
  return amplitudes;
}

SpeedModel::SpeedModel(const ModelSpace& space, std::string metric, bool maximise)
    : space_(space), metric_(std::move(metric)), maximise_(maximise) {}

double SpeedModel::objective_of(double metric) const { return maximise_ ? std::log(metric) : -std::log(metric); }

// What a rate counts in a step: samples of all devices, or of one where the metric is one device's.
double SpeedModel::log_counted(const Point& point) const {
  if (!maximise_) return 0;
  const double devices = metric_ == "FLOPS_per_gpu" ? space_.devices(point) : 1;
  return std::log(space_.samples_per_step(point) / devices);
}

double SpeedModel::phase_objective(const SpeedObservation& m) const {
  const double latency = space_.accumulation(m.point) * (*m.forward + *m.backward) + *m.step;
  return log_counted(m.point) - std::log(latency);
}

// Do the phases of every trial make up its metric, to within half a percent?
bool SpeedModel::phases_explain(const std::vector<SpeedObservation>& observations) {
  constexpr double kWithin = 0.005;
  double sum = 0, squares = 0;
  for (const SpeedObservation& m : observations) {
    if (!m.forward || !m.backward || !m.step) return false;
    const double gap = objective_of(m.metric) - phase_objective(m);
    sum += gap;
    squares += square(gap);
  }
  const double n = static_cast<double>(observations.size());
  offset_ = sum / n;
  return squares / n - square(offset_) < square(kWithin);
}

// The time of a micro step; in an arbitrary unit where the metric has none.
double SpeedModel::time_of(const SpeedObservation& observation) const {
  const double accumulation = space_.accumulation(observation.point);
  if (is_phase(metric_)) return observation.metric;
  if (!maximise_) return observation.metric / accumulation;
  return std::exp(log_counted(observation.point) - std::log(observation.metric) + offset_) / accumulation;
}

void SpeedModel::fit(const std::vector<SpeedObservation>& observations, bool tune) {
  const bool phases = !is_phase(metric_) && phases_explain(observations);
  const std::vector<StepPhase> wanted =
      phases ? std::vector<StepPhase>{StepPhase::forward, StepPhase::backward, StepPhase::step}
             : std::vector<StepPhase>{phase_of(metric_)};
  if (parts_.size() != wanted.size()) {
    parts_.clear();
    for (const StepPhase phase : wanted) parts_.emplace_back(space_, phase, speed_amplitudes(space_.axes()));
  }
  // Throughput counts times a second; FLOPS_per_gpu has no known scale: the first trial takes a fifth of a second.
  if (!phases) {
    offset_ = 0;
    if (maximise_) {
      offset_ = metric_ == "throughput" ? std::log(1e6) : std::log(2e5) - std::log(time_of(observations.front()));
    }
  }
  std::vector<TimeObservation> times(observations.size());
  for (size_t p = 0; p < wanted.size(); ++p) {
    for (size_t i = 0; i < times.size(); ++i) {
      const SpeedObservation& m = observations[i];
      times[i] = {m.point, !phases ? time_of(m) : *(p == 0 ? m.forward : p == 1 ? m.backward : m.step)};
    }
    parts_[p].fit(times, tune);
  }
  // The noise of the whole, from that of the phases, at a measured point.
  noise_variance_ = parts_.front().noise_variance();
  left_out_variance_ = parts_.front().left_out_variance();
  if (by_phases()) {
    const SpeedObservation& m = observations.back();
    const double accumulation = space_.accumulation(m.point);
    const double latency = accumulation * (*m.forward + *m.backward) + *m.step;
    const double shares[] = {accumulation * *m.forward / latency, accumulation * *m.backward / latency,
                             *m.step / latency};
    noise_variance_ = left_out_variance_ = 0;
    for (size_t i = 0; i < 3; ++i) {
      noise_variance_ += square(shares[i]) * parts_[i].noise_variance();
      left_out_variance_ += square(shares[i]) * parts_[i].left_out_variance();
    }
  }
}

void SpeedModel::expect(const std::vector<Point>& pending) {
  for (PhaseModel& part : parts_) part.expect(pending);
}

// Returns the objective that follows from the parts' log times, and gives each part's share of the time.
double SpeedModel::put_together(const Point& point, const double* log_times, double* shares) const {
  const double accumulation = space_.accumulation(point);
  if (!by_phases()) {
    const double per_step = is_phase(metric_) ? 0 : std::log(accumulation);
    const double times = maximise_ ? log_counted(point) + offset_ : 0;
    shares[0] = 1;
    return times - per_step - log_times[0];
  }
  for (size_t p = 0; p < 3; ++p) shares[p] = (p < 2 ? accumulation : 1) * std::exp(log_times[p]);
  const double latency = shares[0] + shares[1] + shares[2];
  for (size_t p = 0; p < 3; ++p) shares[p] /= latency;
  return offset_ + log_counted(point) - std::log(latency);
}

std::vector<Prediction> SpeedModel::predict(const std::vector<Point>& points) const {
  if (points.empty()) return {};
  std::vector<std::vector<Prediction>> parts;
  // All parts have the same sites.
  const PhaseModel::Cross cross = parts_.front().cross(points);
  for (const PhaseModel& part : parts_) parts.push_back(part.predict(points, cross));
  std::vector<Prediction> predictions(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    double log_times[3], shares[3];
    for (size_t p = 0; p < parts.size(); ++p) log_times[p] = parts[p][i].mean;
    predictions[i].mean = put_together(points[i], log_times, shares);
    for (size_t p = 0; p < parts.size(); ++p) predictions[i].variance += square(shares[p]) * parts[p][i].variance;
  }
  return predictions;
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

}  // namespace dsat::zero_model
