// Jointly normal variables, and draws from them.
// Shapes: variables x draws. Threading: pure functions. Errors: none.
#ifndef DSAT_COST_POSTERIOR_JOINT_NORMAL_H_
#define DSAT_COST_POSTERIOR_JOINT_NORMAL_H_

#include <Eigen/Dense>
#include <cmath>

#include "dsat/random.h"

namespace dsat::cost {

struct JointNormal {
  Eigen::VectorXd mean;
  Eigen::MatrixXd covariance;  // symmetric; as rounding has left it
};

// Independent standard normal numbers (Box and Muller, 1958: two at a time).
inline Eigen::MatrixXd normal_numbers(Eigen::Index rows, Eigen::Index columns, Random& random) {
  Eigen::MatrixXd all(rows, columns);
  for (Eigen::Index i = 0; i < all.size(); i += 2) {
    const double radius = std::sqrt(-2 * std::log(1 - random.uniform())), angle = 6.283185307179586 * random.uniform();
    all.data()[i] = radius * std::cos(angle);
    if (i + 1 < all.size()) all.data()[i + 1] = radius * std::sin(angle);
  }
  return all;
}

// At least one variable. Points that are nearly copies of each other leave the covariance singular up to rounding: its
// diagonal is raised until it has a Cholesky factor.
inline Eigen::MatrixXd draw(const JointNormal& joint, Eigen::Index draws, Random& random) {
  constexpr double kJitter = 1e-9;  // of the largest variance
  Eigen::MatrixXd covariance = joint.covariance;
  const double largest = std::max(1e-12, covariance.diagonal().maxCoeff());
  Eigen::LLT<Eigen::MatrixXd> llt;
  for (double jitter = kJitter; jitter < 1; jitter *= 100) {
    covariance.diagonal() = joint.covariance.diagonal().array() + jitter * largest;
    llt.compute(covariance);
    if (llt.info() == Eigen::Success) break;
  }
  Eigen::MatrixXd numbers = normal_numbers(joint.mean.size(), draws, random);
  numbers = llt.matrixL() * numbers;
  numbers.colwise() += joint.mean;
  return numbers;
}

}  // namespace dsat::cost

#endif  // DSAT_COST_POSTERIOR_JOINT_NORMAL_H_
