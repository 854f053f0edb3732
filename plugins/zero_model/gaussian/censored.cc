#include "zero_model/gaussian/censored.h"

#include <algorithm>
#include <cmath>

#include "zero_model/gaussian/normal.h"

namespace dsat::guided {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

double square(double x) { return x * x; }

// What stands in for a side: a normal factor with this precision, and precision x (mean - prior mean).
struct Factors {
  VectorXd precision, shift;
};

// The variables of which a side is known, given all that was measured.
struct Sides {
  std::vector<Index> at, measured;
  VectorXd mean;
  MatrixXd covariance;
  double log_evidence = 0;  // of the measurements
};

Sides condition(const MatrixXd& covariance, const VectorXd& mean, const std::vector<Observed>& observed) {
  Sides sides;
  for (size_t i = 0; i < observed.size(); ++i) {
    (observed[i].value ? sides.measured : sides.at).push_back(static_cast<Index>(i));
  }
  sides.mean = mean(sides.at);
  sides.covariance = covariance(sides.at, sides.at);
  if (sides.measured.empty()) return sides;
  MatrixXd own = covariance(sides.measured, sides.measured);
  VectorXd gap(own.rows());
  for (Index i = 0; i < own.rows(); ++i) {
    const Observed& told = observed[static_cast<size_t>(sides.measured[static_cast<size_t>(i)])];
    own(i, i) += square(told.deviation);
    gap[i] = *told.value - mean[sides.measured[static_cast<size_t>(i)]];
  }
  const Eigen::LLT<MatrixXd> llt(own);
  const VectorXd white = llt.matrixL().solve(gap);
  const MatrixXd across = llt.matrixL().solve(covariance(sides.measured, sides.at));
  sides.mean += across.transpose() * white;
  sides.covariance -= across.transpose() * across;
  sides.log_evidence = -0.5 * white.squaredNorm() - llt.matrixLLT().diagonal().array().log().sum();
  return sides;
}

// Expectation propagation over the sides.
class Propagation {
 public:
  Propagation(const Sides& sides, const std::vector<Observed>& observed) : sides_(sides), observed_(observed) {
    const Index n = sides.mean.size();
    factors_ = {VectorXd::Zero(n), VectorXd::Zero(n)};
    mean_ = sides.mean;
    covariance_ = sides.covariance;
    constexpr int kMostSweeps = 60;
    for (int sweep = 0; sweep < kMostSweeps && n > 0; ++sweep) {
      // The first sweeps go the whole way; what still swings then goes half of it.
      if (update_all(sweep < kMostSweeps / 3 ? 1 : 0.5) < 1e-7) break;
      refresh();
    }
  }

  const Factors& factors() const { return factors_; }

  // What the variable's other sides and measurements say of this one.
  double unexplained(Index i) const {
    const double other_cause = told(i).other_cause;
    return other_cause > 0 ? other_cause / std::exp(tail(i, cavity_of(i)).log_likelihood) : 0;
  }

  double log_evidence() const {
    const Index n = mean_.size();
    double sum = 0;
    for (Index i = 0; i < n; ++i) {
      const Cavity cavity = cavity_of(i);
      const double precision = factors_.precision[i], widened = 1 + precision * cavity.variance;
      const double gap = cavity.mean - sides_.mean[i];  // everything relative to the prior
      sum += tail(i, cavity).log_likelihood + 0.5 * std::log(widened);
      sum += 0.5 *
             (precision * square(gap) - 2 * gap * factors_.shift[i] - cavity.variance * square(factors_.shift[i])) /
             widened;
    }
    // The normal factors' own evidence, but for what the sum above took over.
    const VectorXd root = factors_.precision.cwiseSqrt();
    MatrixXd b = root.asDiagonal() * sides_.covariance * root.asDiagonal();
    b.diagonal().array() += 1;
    const Eigen::LLT<MatrixXd> llt(b);
    const VectorXd moved = mean_ - sides_.mean;
    return sides_.log_evidence + sum + 0.5 * factors_.shift.dot(moved) - llt.matrixLLT().diagonal().array().log().sum();
  }

 private:
  struct Cavity {  // the marginal without the variable's own factor
    double mean, variance;
  };

  Cavity cavity_of(Index i) const {
    constexpr double kLeastVariance = 1e-14;
    const double variance = std::max(kLeastVariance, covariance_(i, i));
    const double precision = std::max(1e-12, 1 / variance - factors_.precision[i]);
    const double shift = (mean_[i] - sides_.mean[i]) / variance - factors_.shift[i];
    return {sides_.mean[i] + shift / precision, 1 / precision};
  }

  const Observed& told(Index i) const { return observed_[static_cast<size_t>(sides_.at[static_cast<size_t>(i)])]; }

  Tail tail(Index i, const Cavity& cavity) const {
    const Observed& side = told(i);
    const double width = std::sqrt(square(side.deviation) + cavity.variance), sign = side.positive ? 1 : -1;
    Tail at = censored(sign * cavity.mean / width, side.other_cause);
    at.slope *= sign / width;
    at.curvature = std::max(0.0, at.curvature / square(width));
    return at;
  }

  // The farthest that a mean moved, in deviations of its prior.
  double update_all(double share) {
    double farthest = 0;
    for (Index i = 0; i < mean_.size(); ++i) {
      const Cavity cavity = cavity_of(i);
      const Tail at = tail(i, cavity);
      const double left = std::max(1e-9, 1 - cavity.variance * at.curvature);
      const double precision = at.curvature / left;
      const double shift = (at.slope + (cavity.mean - sides_.mean[i]) * at.curvature) / left;
      const double by = share * (precision - factors_.precision[i]);
      const double by_shift = share * (shift - factors_.shift[i]);
      factors_.precision[i] += by;
      factors_.shift[i] += by_shift;
      const VectorXd column = covariance_.col(i);
      const double scale = 1 + by * column[i];
      const double step = (by_shift - by * (mean_[i] - sides_.mean[i])) / scale;
      mean_ += step * column;
      covariance_ -= by / scale * column * column.transpose();
      farthest = std::max(farthest, std::abs(step) * std::sqrt(std::max(0.0, column[i])));
    }
    return farthest;
  }

  // The same from the factors, so that rounding does not add up.
  void refresh() {
    const VectorXd root = factors_.precision.cwiseSqrt();
    MatrixXd b = root.asDiagonal() * sides_.covariance * root.asDiagonal();
    b.diagonal().array() += 1;
    const Eigen::LLT<MatrixXd> llt(b);
    const MatrixXd across = llt.matrixL().solve(root.asDiagonal() * sides_.covariance);
    covariance_ = sides_.covariance - across.transpose() * across;
    mean_ = sides_.mean + covariance_ * factors_.shift;
  }

  const Sides& sides_;
  const std::vector<Observed>& observed_;
  Factors factors_;
  VectorXd mean_;
  MatrixXd covariance_;
};

}  // namespace

Posterior infer(const MatrixXd& covariance, const VectorXd& mean, const std::vector<Observed>& observed) {
  const Sides sides = condition(covariance, mean, observed);
  const Propagation propagation(sides, observed);
  // All as normal factors: what predictions need. A factor of a side was centred on the conditional mean.
  Posterior posterior;
  posterior.unexplained = VectorXd::Zero(mean.size());
  VectorXd precision(mean.size()), shift(mean.size());
  for (const Index i : sides.measured) {
    const Observed& told = observed[static_cast<size_t>(i)];
    precision[i] = 1 / square(told.deviation);
    shift[i] = precision[i] * (*told.value - mean[i]);
  }
  for (size_t c = 0; c < sides.at.size(); ++c) {
    const Index i = sides.at[c], own = static_cast<Index>(c);
    posterior.unexplained[i] = propagation.unexplained(own);
    precision[i] = propagation.factors().precision[own];
    shift[i] = propagation.factors().shift[own] + precision[i] * (sides.mean[own] - mean[i]);
  }
  posterior.log_evidence = propagation.log_evidence();
  posterior.root = precision.cwiseSqrt();
  MatrixXd b = posterior.root.asDiagonal() * covariance * posterior.root.asDiagonal();
  b.diagonal().array() += 1;
  posterior.factor = b.llt().matrixL();
  VectorXd t = posterior.root.cwiseProduct(covariance * shift);
  posterior.factor.triangularView<Eigen::Lower>().solveInPlace(t);
  posterior.factor.transpose().triangularView<Eigen::Upper>().solveInPlace(t);
  posterior.weights = shift - posterior.root.cwiseProduct(t);
  return posterior;
}

}  // namespace dsat::guided
