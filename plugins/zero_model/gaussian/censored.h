// The posterior of jointly normal variables, some measured, of others only known on which side of zero they lie.
//
// Measurements are equations with normal noise and are solved exactly. A side is a probit likelihood; what such sides
// make of the normal prior is approximated by expectation propagation, which keeps the mean and the variance of the
// truncated distribution (Minka 2001; Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, section
// 3.6). The mode would lie at the very edge of what a side allows, and be sure of it.
// Threading: pure functions.
#ifndef DSAT_PLUGINS_ZERO_MODEL_GAUSSIAN_CENSORED_H_
#define DSAT_PLUGINS_ZERO_MODEL_GAUSSIAN_CENSORED_H_

#include <Eigen/Dense>
#include <optional>
#include <vector>

namespace dsat::guided {

struct Observed {
  std::optional<double> value;  // measured; else only the side is known
  bool positive = true;         // the side
  double deviation = 0;         // of the measurement's noise, or of the edge at zero
  double other_cause = 0;       // probability that a side tells nothing
};

// mean(x) = prior(x) + k(x)' weights; variance(x) = prior(x) - |factor^-1 (root .* k(x))|^2, for covariances k(x) with
// the observed variables.
struct Posterior {
  Eigen::VectorXd weights, root;
  Eigen::MatrixXd factor;  // lower triangular
  // Of each side the probability that it has another cause; 0 of a measurement.
  Eigen::VectorXd unexplained;
  double log_evidence = 0;  // up to a constant that depends on the number of observations only
};

// `covariance` is of the variables before any noise.
Posterior infer(const Eigen::MatrixXd& covariance, const Eigen::VectorXd& mean, const std::vector<Observed>& observed);

}  // namespace dsat::guided

#endif  // DSAT_PLUGINS_ZERO_MODEL_GAUSSIAN_CENSORED_H_
