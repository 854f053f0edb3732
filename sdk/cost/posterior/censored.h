// The posterior of jointly normal variables, some of which are measured and others censored: only their sign is known.
//
// Method: measurements are equations with normal noise and are solved exactly. A sign is a probit likelihood. Its
//   effect on the normal prior is approximated by expectation propagation, which keeps the mean and the variance of the
//   truncated distribution (Minka 2001; Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006,
//   section 3.6). The mode, Laplace's choice, would lie at the very edge of what a sign allows, and be sure of it.
// Shapes: covariance n x n, mean and results n, for n observations. Threading: pure functions. Errors: none.
#ifndef DSAT_COST_POSTERIOR_CENSORED_H_
#define DSAT_COST_POSTERIOR_CENSORED_H_

#include <Eigen/Dense>
#include <optional>
#include <vector>

namespace dsat::cost {

struct CensoredObservation {
  std::optional<double> value;  // measured; without it the observation is censored
  bool positive = true;         // the sign of a censored variable
  double deviation = 0;         // of the measurement's noise, or of the edge at zero
  double other_cause = 0;       // probability that the sign has another cause
};

// mean(x) = prior(x) + k(x)' weights; variance(x) = prior(x) - |factor^-1 (root .* k(x))|^2, for covariances k(x) with
// the observed variables.
struct Posterior {
  Eigen::VectorXd weights, root;
  Eigen::MatrixXd factor;  // lower triangular
  // The probability that a sign has another cause, for each observation; 0 for a measurement.
  Eigen::VectorXd unexplained;
  double log_evidence = 0;  // up to a constant that depends on the number of observations alone
};

// `covariance` is that of the variables before any noise.
Posterior infer(const Eigen::MatrixXd& covariance, const Eigen::VectorXd& mean,
                const std::vector<CensoredObservation>& observations);

}  // namespace dsat::cost

#endif  // DSAT_COST_POSTERIOR_CENSORED_H_
