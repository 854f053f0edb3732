// A learned model of a micro step's time: the step time model with fitted constants, plus a residual that overrules it.
//
// Formula: log time = log step_time(point; theta) + residual(point) + trend(order) + noise, theta being the constants
// of step_time.h.
//   The first term is linearised about the most probable theta (Gauss-Newton). The whole is then a Gaussian process
//   with covariance J S J' + residual kernel (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006,
//   section 2.7). The evidence chooses the scales of residual and noise from a small grid. A measurement that nothing
//   explains (a straggler) gets a larger noise of its own. The evidence also chooses whether compute goes in waves, and
//   of what size (waves.h), and whether the machine's speed changed while the trials ran (trend.h). Predictions are of
//   the machine as it was at the last of them.
// Units: microseconds; predictions are of the logarithm of the time. Shapes: points x draws, sites x points.
// Threading: one thread. Ownership: refers to the space and to its arms, which must live longer.
// Cost: O(n^3) to fit, O(n^2) a prediction, for n measurements. Errors: none.
#ifndef DSAT_PLUGINS_ZERO_MODEL_SPEED_TIME_MODEL_H_
#define DSAT_PLUGINS_ZERO_MODEL_SPEED_TIME_MODEL_H_

#include <Eigen/Dense>
#include <cmath>
#include <vector>

#include "cost/posterior/joint_normal.h"
#include "cost/posterior/kernel.h"
#include "zero_model/speed/step_time.h"
#include "zero_model/speed/trend.h"
#include "zero_model/speed/waves.h"

namespace dsat::zero_model {

// A normal distribution: of log time here, of the objective in speed_model.h.
struct Prediction {
  double mean = 0, variance = 0;
};

// The deviation of the change that one more trial makes to a point's posterior mean (Frazier, Powell and Dayanik 2009).
inline double mean_change_deviation(const Prediction& prediction, double noise_variance) {
  return prediction.variance / std::sqrt(prediction.variance + noise_variance);
}

struct TimeObservation {
  Point point;
  double time_us = 1;
  double order = 0;  // larger: measured later
};

class TimeModel {
 public:
  TimeModel(const ModelSpace& space, StepPhase phase, Amplitudes amplitudes);

  // Takes at least one observation. `tune`: choose the wave, the scales and the noise anew, which is most of the work;
  // the first fit always does, and one with a measurement that tells more of the wave.
  void fit(const std::vector<TimeObservation>& observations, bool tune);

  std::vector<Prediction> predict(const std::vector<Point>& points) const;
  // Draws of log times from the joint posterior: points x draws.
  Eigen::MatrixXd draw(const std::vector<Point>& points, Eigen::Index draws, Random& random) const;
  size_t sites() const { return sites_.size(); }  // of the last fit
  double noise_variance() const { return noise_ * noise_; }
  // How far a measured time lies from what the other measurements foretell of it: the square of a usual distance.
  double left_out_variance() const { return left_out_ * left_out_; }
  const Trend& trend() const { return trend_; }
  double wave() const { return wave_.wave; }  // samples; 0: compute does not go in waves

 private:
  // The kernel's parts, a matrix each: sites x points, or sites x sites.
  using Cross = std::vector<Eigen::MatrixXd>;
  Cross cross(const std::vector<Point>& points) const;
  Eigen::MatrixXd own_covariance(const std::vector<Point>& points) const;
  bool wave_is_divided() const;
  void choose_wave();
  std::vector<WaveRange> likeliest_ranges();
  double evidence_of(const WaveRange& range);
  void restart_constants(const WaveRange& range);
  void restart(const WaveRange& range);
  void linearise();
  void gauss_newton(int iterations);
  double misfit(const Eigen::VectorXd& theta, const Eigen::LLT<Eigen::MatrixXd>& rest) const;
  void choose_scales();
  double choose_parts(double best);
  double choose_common();
  void choose_trend();
  double evidence_with_stragglers(const Trend& trend);
  void set_trend(const Trend& trend);
  void widen_outliers();
  Eigen::MatrixXd covariance(const Eigen::VectorXd& scales, double noise) const;
  double evidence(const Eigen::VectorXd& scales, double noise) const;
  double log_likelihood(const Eigen::MatrixXd& covariance) const;
  void fill_residual();
  Eigen::VectorXd departure() const;
  Eigen::MatrixXd weighed(const Cross& parts) const;
  Load load_at(const Point& point) const;
  Eigen::MatrixXd log_times_at_sites(const Eigen::MatrixXd& theta) const;
  Eigen::MatrixXd noise_covariance() const;
  Eigen::MatrixXd rest() const;
  Eigen::MatrixXd resampled_theta(Eigen::Index draws, Random& random) const;
  Eigen::MatrixXd linear_theta(Eigen::Index draws, Random& random) const;
  void factorise();
  void solve();

  const ModelSpace& space_;
  StepPhase phase_;
  Kernel kernel_;
  StepTimePrior prior_;
  Eigen::VectorXd scales_;  // of the kernel's parts
  double left_out_ = 0;     // a usual leave-one-out residual; 0: too few measurements
  double noise_ = 0.01;
  WaveRange wave_;
  Trend trend_;
  double first_us_ = 1;   // time of the first observation, which sets the scale of compute
  double reference_ = 1;  // micro batch at which the step time model's compute time is an unknown

  std::vector<Site> sites_;
  std::vector<Load> loads_;
  Eigen::Index measured_ = 0;  // number of sites
  Eigen::VectorXd orders_, log_times_, widened_, values_, theta_, theta_posterior_, weights_;
  Cross residual_;                    // covariance of the sites, part by part
  Eigen::MatrixXd trend_covariance_;  // measured x measured
  Eigen::MatrixXd gradients_, factor_;
};

}  // namespace dsat::zero_model

#endif  // DSAT_PLUGINS_ZERO_MODEL_SPEED_TIME_MODEL_H_
