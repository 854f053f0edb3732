// Turns the metric into the time of a micro step and back: what a step counts is known, its time is learned.
#include "zero_model/speed/speed_model.h"

#include <cmath>
#include <optional>

namespace dsat::zero_model {
namespace {

bool is_phase(const std::string& metric) { return metric == "forward" || metric == "backward" || metric == "step"; }

// Throughput counts times a second; latency and its phases are in microseconds. Other metrics have an unknown unit.
std::optional<double> log_unit_us(const std::string& metric) {
  if (metric == "throughput") return std::log(1e6);
  if (is_phase(metric) || metric == "latency" || metric == "wall_latency") return 0;
  return std::nullopt;
}

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
    : space_(space),
      metric_(std::move(metric)),
      maximise_(maximise),
      time_(space, phase_of(metric_), speed_amplitudes(space.axes())) {}

double SpeedModel::objective_of(double metric) const { return maximise_ ? std::log(metric) : -std::log(metric); }

// What a rate counts in a step: samples of all devices, or of one where the metric is one device's.
double SpeedModel::log_counted(const Point& point) const {
  if (!maximise_) return 0;
  const double devices = metric_ == "FLOPS_per_gpu" ? space_.devices(point) : 1;
  return std::log(space_.samples_per_step(point) / devices);
}

// The time of a micro step.
double SpeedModel::time_of(const SpeedObservation& observation) const {
  if (is_phase(metric_)) return observation.metric;
  return std::exp(log_counted(observation.point) - objective_of(observation.metric) + offset_) /
         space_.accumulation(observation.point);
}

void SpeedModel::fit(const std::vector<SpeedObservation>& observations, bool tune) {
  // Where the unit is unknown, the first trial's micro step takes a fifth of a second.
  offset_ = 0;
  offset_ = log_unit_us(metric_).value_or(std::log(2e5) - std::log(time_of(observations.front())));
  std::vector<TimeObservation> times;
  for (const SpeedObservation& observation : observations) {
    times.push_back({observation.point, time_of(observation), observation.order});
  }
  time_.fit(times, tune);
}

// The objective that follows from the logarithm of a micro step's time.
double SpeedModel::objective_at(const Point& point, double log_time) const {
  const double per_step = is_phase(metric_) ? 0 : std::log(space_.accumulation(point));
  return log_counted(point) + offset_ - per_step - log_time;
}

std::vector<Prediction> SpeedModel::predict(const std::vector<Point>& points) const {
  if (points.empty()) return {};
  std::vector<Prediction> predictions = time_.predict(points);
  for (size_t i = 0; i < points.size(); ++i) predictions[i].mean = objective_at(points[i], predictions[i].mean);
  return predictions;
}

Eigen::MatrixXd SpeedModel::draw(const std::vector<Point>& points, Eigen::Index draws, Random& random) const {
  Eigen::MatrixXd all = time_.draw(points, draws, random);
  for (Eigen::Index i = 0; i < all.rows(); ++i) {
    for (Eigen::Index d = 0; d < draws; ++d) all(i, d) = objective_at(points[static_cast<size_t>(i)], all(i, d));
  }
  return all;
}

}  // namespace dsat::zero_model
