// Predicts a study's objective at a point.
//
// The objective is the logarithm of the study's metric, negated where the metric is minimised: more is better, and a
// difference of 0.01 is one percent. The prediction is a normal distribution.
// Method: the metric is turned into the time of a micro step, which time_model.h learns.
// Units: the metric in its own unit. Threading: one thread. Errors: none.
// Ownership: refers to the space and to its arms, which must live longer.
#ifndef DSAT_PLUGINS_ZERO_MODEL_SPEED_SPEED_MODEL_H_
#define DSAT_PLUGINS_ZERO_MODEL_SPEED_SPEED_MODEL_H_

#include <string>
#include <vector>

#include "zero_model/speed/time_model.h"

namespace dsat::zero_model {

// What one completed trial reported.
struct SpeedObservation {
  Point point;
  double metric = 1;  // of the study; positive
  double order = 0;   // larger: measured later
};

class SpeedModel {
 public:
  SpeedModel(const ModelSpace& space, std::string metric, bool maximise);

  // Takes at least one observation; `tune` as in TimeModel.
  void fit(const std::vector<SpeedObservation>& observations, bool tune);
  std::vector<Prediction> predict(const std::vector<Point>& points) const;
  // Draws of the objective from the joint posterior: points x draws.
  Eigen::MatrixXd draw(const std::vector<Point>& points, Eigen::Index draws, Random& random) const;
  double noise_variance() const { return time_.noise_variance(); }  // of one trial's objective
  // What the fit leaves, noise and all that the model does not know: of a trial that the others were to foretell.
  double left_out_variance() const { return time_.left_out_variance(); }
  double objective_of(double metric) const;
  bool maximises() const { return maximise_; }
  size_t sites() const { return time_.sites(); }

 private:
  double log_counted(const Point& point) const;
  double time_of(const SpeedObservation& observation) const;
  double objective_at(const Point& point, double log_time) const;

  const ModelSpace& space_;
  std::string metric_;
  bool maximise_;
  TimeModel time_;
  double offset_ = 0;  // the logarithm of the unit of time of the metric, in microseconds
};

// Standard deviations of what each axis does beyond the step time model, before any trial.
Amplitudes speed_amplitudes(const std::vector<ModelAxis>& axes);

}  // namespace dsat::zero_model

#endif  // DSAT_PLUGINS_ZERO_MODEL_SPEED_SPEED_MODEL_H_
