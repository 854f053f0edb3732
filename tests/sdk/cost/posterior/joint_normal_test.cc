// Draws of jointly normal variables have the mean and the covariance that were asked for.
// Sums over many draws, with a fixed seed.
#include "cost/posterior/joint_normal.h"

#include <gtest/gtest.h>

namespace dsat::tests {
namespace {

TEST(JointNormal, DrawsHaveTheMeanAndTheCovariance) {
  cost::JointNormal joint{Eigen::VectorXd(2), Eigen::MatrixXd(2, 2)};
  joint.mean << 1, -2;
  joint.covariance << 4, 1, 1, 0.5;
  Random random(7);
  const Eigen::MatrixXd drawn = cost::draw(joint, 20001, random);  // odd: numbers come in pairs
  const Eigen::VectorXd mean = drawn.rowwise().mean();
  const Eigen::MatrixXd about = drawn.colwise() - mean;
  EXPECT_LT((mean - joint.mean).norm(), 0.05);
  EXPECT_LT((about * about.transpose() / 20001 - joint.covariance).norm(), 0.1);
}

}  // namespace
}  // namespace dsat::tests
