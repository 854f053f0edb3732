// Conditions the censored variables on the measured ones exactly, then runs expectation propagation over their signs.
// Both results are written as normal factors, for predictions.
#include "cost/posterior/censored.h"

#include <algorithm>
#include <cmath>

#include "cost/posterior/normal.h"

namespace dsat::cost {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

double square(double x) { return x * x; }

// The normal factors that replace the signs. Each has a precision, and precision x (mean - prior mean).
struct Factors {
  VectorXd precision, shift;
};

// The censored variables given the measurements.
struct Conditional {
  std::vector<Index> censored, measured;
  VectorXd mean;
  MatrixXd covariance;
  double log_evidence = 0;  // of the measurements
};

Conditional condition(const MatrixXd& covariance, const VectorXd& mean,
                      const std::vector<CensoredObservation>& observations) {
  Conditional conditional;
  for (size_t i = 0; i < observations.size(); ++i) {
    (observations[i].value ? conditional.measured : conditional.censored).push_back(static_cast<Index>(i));
  }
  conditional.mean = mean(conditional.censored);
  conditional.covariance = covariance(conditional.censored, conditional.censored);
  if (conditional.measured.empty()) return conditional;
  MatrixXd own = covariance(conditional.measured, conditional.measured);
  VectorXd gap(own.rows());
  for (Index i = 0; i < own.rows(); ++i) {
    const CensoredObservation& observation =
        observations[static_cast<size_t>(conditional.measured[static_cast<size_t>(i)])];
    own(i, i) += square(observation.deviation);
    gap[i] = *observation.value - mean[conditional.measured[static_cast<size_t>(i)]];
  }
  const Eigen::LLT<MatrixXd> llt(own);
  const VectorXd white = llt.matrixL().solve(gap);
  conditional.log_evidence = -0.5 * white.squaredNorm() - llt.matrixLLT().diagonal().array().log().sum();
  if (conditional.censored.empty()) return conditional;
  const MatrixXd across = llt.matrixL().solve(covariance(conditional.measured, conditional.censored));
  conditional.mean += across.transpose() * white;
  conditional.covariance -= across.transpose() * across;
  return conditional;
}

// Expectation propagation over the signs (Rasmussen and Williams 2006, algorithm 3.5).
class ExpectationPropagation {
 public:
  ExpectationPropagation(const Conditional& conditional, const std::vector<CensoredObservation>& observations)
      : conditional_(conditional), observations_(observations) {
    const Index n = conditional.mean.size();
    factors_ = {VectorXd::Zero(n), VectorXd::Zero(n)};
    mean_ = conditional.mean;
    covariance_ = conditional.covariance;
    constexpr int kMostSweeps = 60;
    for (int sweep = 0; sweep < kMostSweeps && n > 0; ++sweep) {
      // Full steps first. If a sweep still oscillates after them, half steps converge.
      if (update_all(sweep < kMostSweeps / 3 ? 1 : 0.5) < 1e-7) break;
      refresh();
    }
  }

  const Factors& factors() const { return factors_; }

  // The probability that the sign of a variable has another cause, given all other signs and measurements.
  double unexplained(Index i) const {
    const double other_cause = observation(i).other_cause;
    return other_cause > 0 ? other_cause / std::exp(tail(i, cavity_of(i)).log_likelihood) : 0;
  }

  double log_evidence() const {
    const Index n = mean_.size();
    if (n == 0) return conditional_.log_evidence;
    double sum = 0;
    for (Index i = 0; i < n; ++i) {
      const Cavity cavity = cavity_of(i);
      const double precision = factors_.precision[i], widened = 1 + precision * cavity.variance;
      const double gap = cavity.mean - conditional_.mean[i];  // all means are relative to the prior
      sum += tail(i, cavity).log_likelihood + 0.5 * std::log(widened);
      sum += 0.5 *
             (precision * square(gap) - 2 * gap * factors_.shift[i] - cavity.variance * square(factors_.shift[i])) /
             widened;
    }
    // The evidence of the normal factors, without the part in the sum above.
    const VectorXd root = factors_.precision.cwiseSqrt();
    MatrixXd b = root.asDiagonal() * conditional_.covariance * root.asDiagonal();
    b.diagonal().array() += 1;
    const Eigen::LLT<MatrixXd> llt(b);
    const VectorXd moved = mean_ - conditional_.mean;
    return conditional_.log_evidence + sum + 0.5 * factors_.shift.dot(moved) -
           llt.matrixLLT().diagonal().array().log().sum();
  }

 private:
  struct Cavity {  // the marginal without the variable's own factor
    double mean, variance;
  };

  Cavity cavity_of(Index i) const {
    constexpr double kLeastVariance = 1e-14;
    const double variance = std::max(kLeastVariance, covariance_(i, i));
    const double precision = std::max(1e-12, 1 / variance - factors_.precision[i]);
    const double shift = (mean_[i] - conditional_.mean[i]) / variance - factors_.shift[i];
    return {conditional_.mean[i] + shift / precision, 1 / precision};
  }

  const CensoredObservation& observation(Index i) const {
    return observations_[static_cast<size_t>(conditional_.censored[static_cast<size_t>(i)])];
  }

  Tail tail(Index i, const Cavity& cavity) const {
    const CensoredObservation& side = observation(i);
    const double width = std::sqrt(square(side.deviation) + cavity.variance), sign = side.positive ? 1 : -1;
    Tail at = censored(sign * cavity.mean / width, side.other_cause);
    at.slope *= sign / width;
    at.curvature = std::max(0.0, at.curvature / square(width));
    return at;
  }

  // Returns the largest move of a mean, in deviations of its prior.
  double update_all(double share) {
    double farthest = 0;
    for (Index i = 0; i < mean_.size(); ++i) {
      const Cavity cavity = cavity_of(i);
      const Tail at = tail(i, cavity);
      const double left = std::max(1e-9, 1 - cavity.variance * at.curvature);
      const double precision = at.curvature / left;
      const double shift = (at.slope + (cavity.mean - conditional_.mean[i]) * at.curvature) / left;
      const double by = share * (precision - factors_.precision[i]);
      const double by_shift = share * (shift - factors_.shift[i]);
      factors_.precision[i] += by;
      factors_.shift[i] += by_shift;
      const VectorXd column = covariance_.col(i);
      const double scale = 1 + by * column[i];
      const double step = (by_shift - by * (mean_[i] - conditional_.mean[i])) / scale;
      mean_ += step * column;
      covariance_ -= by / scale * column * column.transpose();
      farthest = std::max(farthest, std::abs(step) * std::sqrt(std::max(0.0, column[i])));
    }
    return farthest;
  }

  // Recomputes mean and covariance from the factors, so that rounding errors do not add up.
  void refresh() {
    const VectorXd root = factors_.precision.cwiseSqrt();
    MatrixXd b = root.asDiagonal() * conditional_.covariance * root.asDiagonal();
    b.diagonal().array() += 1;
    const Eigen::LLT<MatrixXd> llt(b);
    const MatrixXd across = llt.matrixL().solve(root.asDiagonal() * conditional_.covariance);
    covariance_ = conditional_.covariance - across.transpose() * across;
    mean_ = conditional_.mean + covariance_ * factors_.shift;
  }

  const Conditional& conditional_;
  const std::vector<CensoredObservation>& observations_;
  Factors factors_;
  VectorXd mean_;
  MatrixXd covariance_;
};

}  // namespace

Posterior infer(const MatrixXd& covariance, const VectorXd& mean,
                const std::vector<CensoredObservation>& observations) {
  if (observations.empty()) return {};
  const Conditional conditional = condition(covariance, mean, observations);
  const ExpectationPropagation propagation(conditional, observations);
  // The factor of a sign is centred on the conditional mean. Here all factors are relative to the prior mean.
  Posterior posterior;
  posterior.unexplained = VectorXd::Zero(mean.size());
  VectorXd precision(mean.size()), shift(mean.size());
  for (const Index i : conditional.measured) {
    const CensoredObservation& observation = observations[static_cast<size_t>(i)];
    precision[i] = 1 / square(observation.deviation);
    shift[i] = precision[i] * (*observation.value - mean[i]);
  }
  for (size_t c = 0; c < conditional.censored.size(); ++c) {
    const Index i = conditional.censored[c], own = static_cast<Index>(c);
    posterior.unexplained[i] = propagation.unexplained(own);
    precision[i] = propagation.factors().precision[own];
    shift[i] = propagation.factors().shift[own] + precision[i] * (conditional.mean[own] - mean[i]);
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

}  // namespace dsat::cost
