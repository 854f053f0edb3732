// The posterior of variables of which some are measured and of others only the side of zero is known, beside what
// closed forms and integration say; and what it makes of memory.
#include "zero_model/gaussian/censored.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plugins/searchers.h"
#include "zero_model/choice/surrogate.h"
#include "zero_model/gaussian/normal.h"

namespace dsat::tests {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using guided::infer;
using guided::Observed;
using guided::Posterior;

Observed measured(double value, double deviation) { return {value, true, deviation, 0}; }
Observed side(bool positive, double edge, double other_cause = 0) {
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

TEST(OneSided, MeasurementsAloneAreRegression) {
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

TEST(OneSided, TheSideOfOneVariableGivesTheTruncatedNormal) {
  const MatrixXd k = MatrixXd::Constant(1, 1, 4);
  const VectorXd mean = VectorXd::Constant(1, -3);
  const Posterior posterior = infer(k, mean, {side(true, 1e-4)});
  const double alpha = 1.5;  // (0 - mean) / deviation
  const double hazard = guided::normal_density(alpha) / guided::normal_cdf(-alpha);
  const Marginal is = marginal(posterior, k, mean, 0);
  EXPECT_NEAR(is.mean, -3 + 2 * hazard, 1e-3);
  EXPECT_NEAR(is.variance, 4 * (1 + alpha * hazard - hazard * hazard), 1e-3);
  EXPECT_NEAR(posterior.log_evidence, std::log(guided::normal_cdf(-alpha)), 1e-6);
}

TEST(OneSided, AMeasurementBesideASideMovesIt) {
  MatrixXd k(2, 2);
  k << 1, 0.9, 0.9, 1;
  const VectorXd mean = VectorXd::Zero(2);
  const Posterior posterior = infer(k, mean, {measured(1, 0.1), side(false, 1e-4)});
  const double conditional = 0.9 / 1.01, variance = 1 - 0.81 / 1.01;
  const double evidence =
      -0.5 * 1 / 1.01 - 0.5 * std::log(1.01) + std::log(guided::normal_cdf(-conditional / std::sqrt(variance)));
  EXPECT_NEAR(posterior.log_evidence, evidence, 1e-5);
  EXPECT_LT(marginal(posterior, k, mean, 1).mean, 0);
}

// Three sides of correlated variables, against sums over a grid.
TEST(OneSided, SidesTogetherGiveNearlyTheTrueMeanAndVariance) {
  MatrixXd k(3, 3);
  k << 1, 0.7, 0.4, 0.7, 1, 0.6, 0.4, 0.6, 1;
  VectorXd mean(3);
  mean << -1, 0.3, 0.8;
  const std::vector<Observed> told{side(true, 0.05), side(false, 0.05), side(true, 0.05)};
  const MatrixXd precision = k.inverse();
  double mass = 0, first = 0, second = 0;
  VectorXd x(3);
  for (x[0] = -4; x[0] < 3; x[0] += 0.05) {
    for (x[1] = -3.5; x[1] < 3.5; x[1] += 0.05) {
      for (x[2] = -3; x[2] < 4; x[2] += 0.05) {
        const double weight = std::exp(-0.5 * (x - mean).dot(precision * (x - mean))) *
                              guided::normal_cdf(x[0] / 0.05) * guided::normal_cdf(-x[1] / 0.05) *
                              guided::normal_cdf(x[2] / 0.05);
        mass += weight;
        first += weight * x[0];
        second += weight * x[0] * x[0];
      }
    }
  }
  const Marginal is = marginal(infer(k, mean, told), k, mean, 0);
  EXPECT_NEAR(is.mean, first / mass, 0.02);
  EXPECT_NEAR(is.variance, second / mass - (first / mass) * (first / mass), 0.02);
}

TEST(OneSided, WhatMeasurementsRuleOutHasAnotherCause) {
  MatrixXd k(2, 2);
  k << 1, 0.9999, 0.9999, 1;
  const VectorXd mean = VectorXd::Zero(2);
  const std::vector<Observed> told{measured(-2, 0.01), side(true, 0.01, 1e-5)};
  const Posterior posterior = infer(k, mean, told);
  EXPECT_GT(posterior.unexplained[1], 0.99);
  EXPECT_EQ(posterior.unexplained[0], 0);
  EXPECT_NEAR(marginal(posterior, k, mean, 1).mean, -2, 0.02);
  EXPECT_LT(infer(k, mean, {measured(2, 0.01), side(true, 0.01, 1e-5)}).unexplained[1], 0.01);
}

class Memory : public ::testing::Test {
 protected:
  Memory()
      : study_(make_study(surface_, small_space({0, 1, 2, 3}))),
        lattice_(study_),
        formula_(lattice_, prior(), guided::formula_law(lattice_.knobs())),
        memory_(lattice_, prior()) {}

  guided::MemoryPrior prior() const {
    guided::MemoryPrior prior;
    prior.device_bytes = 16e9;
    prior.activation_bytes = 1e8;
    prior.activation_deviation = 4e7;
    return prior;
  }
  guided::Point point(int64_t micro_batch) { return {lattice_.arm(guided::Configuration{1, {0}}), micro_batch}; }
  guided::MemoryModel::Sample fits(int64_t micro_batch, double peak_bytes) {
    return {point(micro_batch), true, peak_bytes};
  }
  guided::MemoryModel::Sample fails(int64_t micro_batch) { return {point(micro_batch), false, std::nullopt}; }

  Surface surface_;
  Study study_;
  guided::Lattice lattice_;
  guided::MemoryModel formula_;
  guided::MemoryBelief memory_;
};

TEST_F(Memory, ASizeThatSurelyFittedAndFailedIsNotFollowedByOneJustBelow) {
  const double base = formula_.peak_bytes(point(2));
  memory_.fit({fits(2, base)}, true);
  ASSERT_GT(memory_.probability_of_fitting(point(84)), 0.8);
  memory_.fit({fits(2, base), fails(84)}, true);
  EXPECT_LT(memory_.probability_of_fitting(point(76)), 0.7);
  EXPECT_GT(memory_.probability_of_fitting(point(8)), 0.9);
}

TEST_F(Memory, AFailureThatNothingExplainsCastsDoubtOnItsNeighboursOnly) {
  std::vector<guided::MemoryModel::Sample> known;
  for (const int64_t m : {2, 8, 16, 60, 80, 100}) known.push_back(fits(m, 2e9 + 1e8 * static_cast<double>(m)));
  memory_.fit(known, true);
  ASSERT_GT(memory_.probability_of_fitting(point(31)), 0.95);
  known.push_back(fails(30));
  memory_.fit(known, true);
  EXPECT_LT(memory_.probability_of_fitting(point(31)), 0.3);
  EXPECT_GT(memory_.probability_of_fitting(point(12)), 0.9);
  EXPECT_GT(memory_.probability_of_fitting(point(90)), 0.9);
}

// The formula's memory grows by the sample.
TEST_F(Memory, GrowthByDoublingsIsLearnedFromAFewPeaks) {
  std::vector<guided::MemoryModel::Sample> known;
  for (const int64_t m : {1, 2, 4, 8}) known.push_back(fits(m, 16e9 * (0.3 + 0.1 * std::log2(m))));
  formula_.fit(known, true);
  EXPECT_LT(formula_.probability_of_fitting(point(48)), 0.4);
  memory_.fit(known, true);
  EXPECT_GT(memory_.probability_of_fitting(point(48)), 0.7);
  EXPECT_LT(memory_.probability_of_fitting(point(256)), 0.3);
}

TEST_F(Memory, OneFailureThatThePeaksRuleOutLeavesLargerSizesWorthALook) {
  std::vector<guided::MemoryModel::Sample> known;
  for (const int64_t m : {1, 2, 4}) known.push_back(fits(m, 2e9 + 1e8 * static_cast<double>(m)));
  known.push_back(fails(12));
  memory_.fit(known, true);
  EXPECT_GT(memory_.probability_of_fitting(point(40)), 0.3);
  EXPECT_LT(memory_.probability_of_fitting(point(12)), 0.3);
}

TEST_F(Memory, SeveralFailuresAboveOneSizeAreACeiling) {
  std::vector<guided::MemoryModel::Sample> known;
  for (const int64_t m : {1, 2, 4, 60}) known.push_back(fits(m, 2e9 + 1e8 * static_cast<double>(m)));
  for (const int64_t m : {100, 80, 70}) known.push_back(fails(m));
  memory_.fit(known, true);
  EXPECT_LT(memory_.probability_of_fitting(point(90)), 0.3);
  EXPECT_GT(memory_.probability_of_fitting(point(50)), 0.9);
}

}  // namespace
}  // namespace dsat::tests
