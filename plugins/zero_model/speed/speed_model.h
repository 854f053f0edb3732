// Predicts a study's objective at a point.
//
// The objective is the logarithm of the study's metric, negated where the metric is minimised: more is better, and a
// difference of 0.01 is one percent. The prediction is a normal distribution.
// Method: where trials report forward, backward and step, each phase has a model of its own, and a step's time is the
//   sum of them. Where trials report the metric alone, or where the metric does not follow from the phases, one model
//   learns the whole.
// Units: phases in microseconds, the metric in its own unit. Threading: one thread. Errors: none.
// Ownership: refers to the space and to its arms, which must live longer.
#ifndef DSAT_PLUGINS_ZERO_MODEL_SPEED_SPEED_MODEL_H_
#define DSAT_PLUGINS_ZERO_MODEL_SPEED_SPEED_MODEL_H_

#include <optional>
#include <string>
#include <vector>

#include "zero_model/speed/phase_model.h"

namespace dsat::zero_model {

// What one completed trial reported.
struct SpeedObservation {
  Point point;
  double metric = 1;                              // of the study; positive
  std::optional<double> forward, backward, step;  // us
};

class SpeedModel {
 public:
  SpeedModel(const ModelSpace& space, std::string metric, bool maximise);

  // Takes at least one observation; `tune` as in PhaseModel.
  void fit(const std::vector<SpeedObservation>& observations, bool tune);
  void expect(const std::vector<Point>& pending);
  std::vector<Prediction> predict(const std::vector<Point>& points) const;
  // Draws of the objective from the joint posterior: points x draws.
  Eigen::MatrixXd draw(const std::vector<Point>& points, Eigen::Index draws, Random& random) const;
  double noise_variance() const { return noise_variance_; }  // of one trial's objective
  // What the fit leaves, noise and all that the model does not know: of a trial that the others were to foretell.
  double left_out_variance() const { return left_out_variance_; }
  double objective_of(double metric) const;
  bool maximises() const { return maximise_; }
  size_t sites() const { return parts_.empty() ? 0 : parts_.front().sites(); }

 private:
  bool by_phases() const { return parts_.size() == 3; }
  bool phases_explain(const std::vector<SpeedObservation>& observations);
  double log_counted(const Point& point) const;
  double phase_objective(const SpeedObservation& m) const;
  double time_of(const SpeedObservation& observation) const;
  double put_together(const Point& point, const double* log_times, double* shares) const;

  const ModelSpace& space_;
  std::string metric_;
  bool maximise_;
  std::vector<PhaseModel> parts_;
  double offset_ = 0;  // the objective, less the one that the predicted time alone gives
  double noise_variance_ = 1e-4, left_out_variance_ = 0;
};

// Standard deviations of what each axis does beyond the step time model, before any trial.
Amplitudes speed_amplitudes(const std::vector<ModelAxis>& axes);

}  // namespace dsat::zero_model

#endif  // DSAT_PLUGINS_ZERO_MODEL_SPEED_SPEED_MODEL_H_
