// The trend: how the machine became slower or faster while the study ran.
//
// Purpose: without it a trial in a slow hour looks like a slow configuration. A trend is a covariance of log times that
//   depends on the order of the measurements alone. It is 0 at the last one, so predictions are of the machine as it is
//   now, and what is measured next has no trend either.
// Kinds: a jump, when another job comes or goes, by an unknown factor that all earlier measurements share; and a walk,
//   of heat or clocks (the Wiener process, backwards from the last measurement).
// Threading: pure functions. Errors: none.
#ifndef DSAT_PLUGINS_ZERO_MODEL_SPEED_TREND_H_
#define DSAT_PLUGINS_ZERO_MODEL_SPEED_TREND_H_

#include <Eigen/Dense>
#include <vector>

namespace dsat::zero_model {

struct Trend {
  enum class Kind { none, walk, jump };
  Kind kind = Kind::none;
  double amplitude = 0;  // deviation of the logarithm: of the jump, or of the whole walk
  double jump_at = 0;    // order of the first measurement after the jump
  double log_prior = 0;
};

// None first. Too few measurements tell no trend from their configurations.
std::vector<Trend> possible_trends(const Eigen::VectorXd& orders);

// Measurements x measurements.
Eigen::MatrixXd covariance_of(const Trend& trend, const Eigen::VectorXd& orders);

}  // namespace dsat::zero_model

#endif  // DSAT_PLUGINS_ZERO_MODEL_SPEED_TREND_H_
