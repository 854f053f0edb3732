// Joint draws of TimeModel: the constants first, then the residual.
#include "zero_model/speed/time_model.h"

namespace dsat::zero_model {

// With few trials theta is far from normal, so draws from the prior are kept in proportion to their likelihood
// (sampling, importance resampling: Rubin 1988). Empty: too few draws are likely.
Eigen::MatrixXd TimeModel::resampled_theta(Eigen::Index draws, Random& random) const {
  constexpr Eigen::Index kFew = 6, kPool = 16;
  if (measured_ > kFew) return {};
  Eigen::MatrixXd pool = prior_.deviation.asDiagonal() * normal_numbers(theta_.size(), kPool * draws, random);
  pool.colwise() += prior_.mean;
  const Eigen::LLT<Eigen::MatrixXd> llt(rest());
  const Eigen::MatrixXd gaps = (-log_times_at_sites(pool)).colwise() + log_times_;
  const Eigen::ArrayXd misfit = llt.matrixL().solve(gaps).colwise().squaredNorm();
  const Eigen::ArrayXd weights = (-0.5 * (misfit - misfit.minCoeff())).exp();
  const double total = weights.sum(), effective = total * total / weights.square().sum();
  if (effective < 0.25 * static_cast<double>(draws)) return {};
  Eigen::MatrixXd theta(theta_.size(), draws);
  double so_far = 0;
  Eigen::Index next = 0;
  for (Eigen::Index i = 0; i < pool.cols(); ++i) {
    so_far += weights[i] / total * static_cast<double>(draws);
    for (; next < draws && static_cast<double>(next) + 0.5 < so_far; ++next) theta.col(next) = pool.col(i);
  }
  for (; next < draws; ++next) theta.col(next) = pool.col(pool.cols() - 1);
  // The draws are shuffled, because they are paired with those of other models.
  for (Eigen::Index i = draws - 1; i > 0; --i) {
    theta.col(i).swap(theta.col(static_cast<Eigen::Index>(random.uniform_below(static_cast<uint64_t>(i) + 1))));
  }
  return theta;
}

// A draw from the prior, moved by its distance from the measurements (Matheron's rule: Journel and Huijbregts, 1978).
Eigen::MatrixXd TimeModel::linear_theta(Eigen::Index draws, Random& random) const {
  const Eigen::MatrixXd gradients = gradients_;
  Eigen::MatrixXd theta = prior_.deviation.asDiagonal() * normal_numbers(theta_.size(), draws, random);
  const Eigen::LLT<Eigen::MatrixXd> llt(rest());
  Eigen::MatrixXd lacking = -gradients * theta - llt.matrixL() * normal_numbers(measured_, draws, random);
  lacking.colwise() += departure();
  factor_.triangularView<Eigen::Lower>().solveInPlace(lacking);
  factor_.transpose().triangularView<Eigen::Upper>().solveInPlace(lacking);
  theta += prior_.deviation.array().square().matrix().asDiagonal() * gradients.transpose() * lacking;
  theta.colwise() += prior_.mean;
  return theta;
}

// Draws the constants, then the residual that leads from their step times to the measurements.
Eigen::MatrixXd TimeModel::draw(const std::vector<Point>& points, Eigen::Index draws, Random& random) const {
  const Eigen::Index count = static_cast<Eigen::Index>(points.size()), n = measured_;
  Eigen::MatrixXd theta = resampled_theta(draws, random);
  if (theta.size() == 0) theta = linear_theta(draws, random);
  const Eigen::MatrixXd covariance = weighed(cross(points));
  JointNormal residual{Eigen::VectorXd::Zero(n + count), Eigen::MatrixXd(n + count, n + count)};
  residual.covariance << weighed(residual_), covariance, covariance.transpose(), own_covariance(points);
  const Eigen::MatrixXd drawn = zero_model::draw(residual, draws, random);
  Eigen::MatrixXd lacking = -log_times_at_sites(theta) - drawn.topRows(n);
  lacking -= noise_covariance().llt().matrixL() * normal_numbers(n, draws, random);
  lacking.colwise() += log_times_;
  Eigen::MatrixXd log_times = drawn.bottomRows(count) + covariance.transpose() * rest().llt().solve(lacking);
  std::vector<Load> loads;
  for (const Point& point : points) loads.push_back(load_at(point));
  for (Eigen::Index d = 0; d < draws; ++d) {
    const Eigen::VectorXd constants = theta.col(d).array().exp();
    for (Eigen::Index i = 0; i < count; ++i) {
      log_times(i, d) += log_time(phase_, loads[static_cast<size_t>(i)], constants);
    }
  }
  return log_times;
}

}  // namespace dsat::zero_model
