// One phase's time, learned: physics with unknown constants plus a residual that overrules it.
//
// log time = log physics(point; theta) + residual(point) + noise. The physics is linearised about the most probable
// theta (Gauss-Newton), which makes the whole a Gaussian process with covariance J S J' + residual kernel (Rasmussen
// and Williams, "Gaussian Processes for Machine Learning", 2006, section 2.7). How large residual and noise are is
// chosen from a small grid by the evidence; a measurement that nothing explains (a straggler) gets a larger noise.
// Threading: one thread. Cost: O(n^3) to fit, O(n^2) a prediction.
#ifndef DSAT_PLUGINS_ZERO_MODEL_SPEED_PHASE_MODEL_H_
#define DSAT_PLUGINS_ZERO_MODEL_SPEED_PHASE_MODEL_H_

#include <Eigen/Dense>
#include <vector>

#include "zero_model/gaussian/joint_normal.h"
#include "zero_model/gaussian/kernel.h"
#include "zero_model/speed/step_time.h"

namespace dsat::guided {

// Of log time.
struct Belief {
  double mean = 0, variance = 0;
};

class PhaseModel {
 public:
  PhaseModel(const Lattice& lattice, Phase phase, Amplitudes amplitudes);

  struct Sample {
    Point point;
    double time_us = 1;
  };
  // At least one sample. `tune`: choose the scales and the noise anew, which is most of the work; the first fit does.
  void fit(const std::vector<Sample>& samples, bool tune);
  // Counts points that will be measured soon: they narrow beliefs, and do not move them.
  void expect(const std::vector<Point>& pending);

  // What the kernel says of points against the sites: the same for all phases of a study.
  using Cross = std::vector<Eigen::MatrixXd>;  // of each part: sites x points
  Cross cross(const std::vector<Point>& points) const;
  std::vector<Belief> predict(const std::vector<Point>& points, const Cross& parts) const;
  // Log times of the joint belief: points x draws. `own` is what the kernel says of the points against each other, the
  // same for all phases; nothing may be pending.
  Eigen::MatrixXd draw(const std::vector<Point>& points, const Cross& across, const Cross& own, Eigen::Index draws,
                       Random& random) const;
  Cross own_cross(const std::vector<Point>& points) const;
  size_t sites() const { return sites_.size(); }  // of the last fit, pending ones included
  double noise_variance() const { return noise_ * noise_; }
  const Eigen::VectorXd& theta() const { return theta_; }

 private:
  void linearise();
  void gauss_newton(int iterations);
  double misfit(const Eigen::VectorXd& theta, const Eigen::LLT<Eigen::MatrixXd>& rest) const;
  void choose_scales();
  void widen_outliers();
  Eigen::MatrixXd covariance(const Eigen::VectorXd& scales, double noise) const;
  double evidence(const Eigen::VectorXd& scales, double noise) const;
  void fill(Cross& all, const std::vector<Site>& sites, Eigen::Index from) const;
  double choose_parts(double best);
  Eigen::VectorXd departure() const;
  Eigen::MatrixXd weighed(const Cross& parts) const;
  Load load_at(const Point& point) const;
  Eigen::MatrixXd physics_at_sites(const Eigen::MatrixXd& theta) const;
  Eigen::MatrixXd rest() const;
  Eigen::MatrixXd resampled_theta(Eigen::Index draws, Random& random) const;
  Eigen::MatrixXd linear_theta(Eigen::Index draws, Random& random) const;
  void factorise();
  void solve();

  const Lattice& lattice_;
  Phase phase_;
  Kernel kernel_;
  Prior prior_;
  Eigen::VectorXd scales_;  // of the kernel's parts
  double noise_ = 0.01;
  double reference_ = 1;  // micro batch, of the physics

  std::vector<Site> sites_;
  std::vector<Load> loads_;
  Eigen::Index measured_ = 0;  // the first of the sites; the rest is pending
  Eigen::VectorXd log_times_, widened_, values_, theta_, theta_posterior_, weights_;
  Cross residual_;  // each part's covariance
  Eigen::MatrixXd gradients_, factor_;
};

}  // namespace dsat::guided

#endif  // DSAT_PLUGINS_ZERO_MODEL_SPEED_PHASE_MODEL_H_
