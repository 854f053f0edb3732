// How good a point is: the study's metric, believed as a normal distribution of its logarithm.
//
// Where trials tell forward, backward and step, each has a model of its own and a step's time is put together from
// them; where they tell the metric only, or the metric does not follow from the phases, one model learns the whole.
// "Goodness" is the logarithm of the metric, negated for a minimised one: more is better, differences are gains.
// Threading: one thread.
#ifndef DSAT_PLUGINS_ZERO_MODEL_SPEED_SPEED_MODEL_H_
#define DSAT_PLUGINS_ZERO_MODEL_SPEED_SPEED_MODEL_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zero_model/speed/phase_model.h"

namespace dsat::guided {

// What a completed trial told.
struct Measurement {
  Point point;
  double metric = 1;                              // of the study; positive
  std::optional<double> forward, backward, step;  // us
};

class SpeedModel {
 public:
  SpeedModel(const Lattice& lattice, std::string metric, bool maximise);

  void fit(const std::vector<Measurement>& measurements, bool tune);  // at least one; tune: see PhaseModel
  void expect(const std::vector<Point>& pending);
  std::vector<Belief> goodness(const std::vector<Point>& points) const;
  // Of the joint belief: points x draws.
  Eigen::MatrixXd draw(const std::vector<Point>& points, Eigen::Index draws, Random& random) const;
  double noise_variance() const { return noise_variance_; }  // of one trial's goodness
  double metric(double goodness) const;
  double goodness_of(double metric) const;
  size_t sites() const { return parts_.empty() ? 0 : parts_.front().sites(); }
  bool by_phases() const { return parts_.size() == 3; }

 private:
  bool phases_explain(const std::vector<Measurement>& measurements);
  double time_of(const Measurement& measurement) const;
  double put_together(const Point& point, const double* log_times, double* shares) const;

  const Lattice& lattice_;
  std::string metric_;
  bool maximise_;
  std::vector<PhaseModel> parts_;
  Phase single_ = Phase::total;
  double offset_ = 0;  // goodness less that of the predicted time
  double noise_variance_ = 1e-4;
};

// How strongly knobs act beyond the physics, before any trial.
Amplitudes speed_amplitudes(const std::vector<Knob>& knobs);

}  // namespace dsat::guided

#endif  // DSAT_PLUGINS_ZERO_MODEL_SPEED_SPEED_MODEL_H_
