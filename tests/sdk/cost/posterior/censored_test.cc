// The posterior of measured and censored variables, against closed forms and numerical integration.
// Sums over a grid stand in for integrals where there is no closed form.
#include "cost/posterior/censored.h"

#include <gtest/gtest.h>

#include <cmath>

#include "dsat/base/normal.h"

namespace dsat::tests {
namespace {

using cost::CensoredObservation;
using cost::infer;
using cost::Posterior;
using Eigen::MatrixXd;
using Eigen::VectorXd;

CensoredObservation measured(double value, double deviation) { return {value, true, deviation, 0}; }
CensoredObservation sign(bool positive, double edge, double other_cause = 0) {
  return {std::nullopt, positive, edge, other_cause};
}

struct Marginal {
  double mean, variance;
};
Marginal marginal(const Posterior& posterior, const MatrixXd& covariance, const VectorXd& mean, Eigen::Index i) {
  const VectorXd with = covariance.col(i);
  const VectorXd white =
      posterior.factor.triangularView<Eigen::Lower>().solve(posterior.root.cwiseProduct(with).eval());
  return {mean[i] + with.dot(posterior.weights), covariance(i, i) - white.squaredNorm()};
}

TEST(Censored, MeasurementsAloneAreRegression) {
  MatrixXd k(2, 2);
  k << 2, 0.6, 0.6, 1;
  const VectorXd mean = VectorXd::Constant(2, 0.5);
  VectorXd value(2);
  value << 1.5, -0.25;
  const Posterior posterior = infer(k, mean, {measured(value[0], 0.1), measured(value[1], 0.2)});
  MatrixXd noisy = k;
  noisy(0, 0) += 0.01;
  noisy(1, 1) += 0.04;
  const VectorXd weights = noisy.inverse() * (value - mean);
  EXPECT_LT((posterior.weights - weights).norm(), 1e-9);
  const double evidence = -0.5 * (value - mean).dot(weights) - 0.5 * std::log(noisy.determinant());
  EXPECT_NEAR(posterior.log_evidence, evidence, 1e-9);
}

TEST(Censored, WithoutObservationsNothingIsLearned) {
  const Posterior posterior = infer(MatrixXd(0, 0), VectorXd(0), {});
  EXPECT_EQ(posterior.weights.size(), 0);
  EXPECT_EQ(posterior.log_evidence, 0);
}

TEST(Censored, TheSignOfOneVariableGivesTheTruncatedNormal) {
  const MatrixXd k = MatrixXd::Constant(1, 1, 4);
  const VectorXd mean = VectorXd::Constant(1, -3);
  const Posterior posterior = infer(k, mean, {sign(true, 1e-4)});
  const double alpha = 1.5;  // (0 - mean) / deviation
  const double hazard = normal_density(alpha) / normal_cdf(-alpha);
  const Marginal is = marginal(posterior, k, mean, 0);
  EXPECT_NEAR(is.mean, -3 + 2 * hazard, 1e-3);
  EXPECT_NEAR(is.variance, 4 * (1 + alpha * hazard - hazard * hazard), 1e-3);
  EXPECT_NEAR(posterior.log_evidence, std::log(normal_cdf(-alpha)), 1e-6);
}

TEST(Censored, AMeasurementMovesACensoredVariable) {
  MatrixXd k(2, 2);
  k << 1, 0.9, 0.9, 1;
  const VectorXd mean = VectorXd::Zero(2);
  const Posterior posterior = infer(k, mean, {measured(1, 0.1), sign(false, 1e-4)});
  const double conditional = 0.9 / 1.01, variance = 1 - 0.81 / 1.01;
  const double evidence =
      -0.5 * 1 / 1.01 - 0.5 * std::log(1.01) + std::log(normal_cdf(-conditional / std::sqrt(variance)));
  EXPECT_NEAR(posterior.log_evidence, evidence, 1e-5);
  EXPECT_LT(marginal(posterior, k, mean, 1).mean, 0);
}

// Three signs of correlated variables, against sums over a grid.
TEST(Censored, SeveralSignsGiveNearlyTheTrueMeanAndVariance) {
  MatrixXd k(3, 3);
  k << 1, 0.7, 0.4, 0.7, 1, 0.6, 0.4, 0.6, 1;
  VectorXd mean(3);
  mean << -1, 0.3, 0.8;
  const std::vector<CensoredObservation> observations{sign(true, 0.05), sign(false, 0.05), sign(true, 0.05)};
  const MatrixXd precision = k.inverse();
  double mass = 0, first = 0, second = 0;
  VectorXd x(3);
  for (x[0] = -4; x[0] < 3; x[0] += 0.05) {
    for (x[1] = -3.5; x[1] < 3.5; x[1] += 0.05) {
      for (x[2] = -3; x[2] < 4; x[2] += 0.05) {
        const double weight = std::exp(-0.5 * (x - mean).dot(precision * (x - mean))) * normal_cdf(x[0] / 0.05) *
                              normal_cdf(-x[1] / 0.05) * normal_cdf(x[2] / 0.05);
        mass += weight;
        first += weight * x[0];
        second += weight * x[0] * x[0];
      }
    }
  }
  const Marginal is = marginal(infer(k, mean, observations), k, mean, 0);
  EXPECT_NEAR(is.mean, first / mass, 0.02);
  EXPECT_NEAR(is.variance, second / mass - (first / mass) * (first / mass), 0.02);
}

TEST(Censored, ASignThatMeasurementsRuleOutHasAnotherCause) {
  MatrixXd k(2, 2);
  k << 1, 0.9999, 0.9999, 1;
  const VectorXd mean = VectorXd::Zero(2);
  const std::vector<CensoredObservation> observations{measured(-2, 0.01), sign(true, 0.01, 1e-5)};
  const Posterior posterior = infer(k, mean, observations);
  EXPECT_GT(posterior.unexplained[1], 0.99);
  EXPECT_EQ(posterior.unexplained[0], 0);
  EXPECT_NEAR(marginal(posterior, k, mean, 1).mean, -2, 0.02);
  EXPECT_LT(infer(k, mean, {measured(2, 0.01), sign(true, 0.01, 1e-5)}).unexplained[1], 0.01);
}

}  // namespace
}  // namespace dsat::tests
