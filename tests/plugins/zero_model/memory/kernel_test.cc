// The kernel: near points are alike, and it is a covariance.
// Only the interaction part has an amplitude here.
#include "cost/posterior/kernel.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "plugins/searchers.h"
#include "zero_model/space/space.h"

namespace dsat::tests {
namespace {

class KernelTest : public ::testing::Test {
 protected:
  KernelTest() : study_(make_study(surface_, small_space({1, 2}))), space_(study_) {}

  zero_model::Site site(int stage, size_t value, int64_t micro_batch) {
    const size_t axes = space_.tuning_space().stage(stage)->axes.size();
    std::vector<size_t> choice(axes, 0);
    if (axes > 0) choice[0] = value;
    return zero_model::site_of({space_.arm(zero_model::Configuration{stage, choice}), micro_batch});
  }
  double interaction(const zero_model::Site& a, const zero_model::Site& b) const {
    zero_model::Amplitudes amplitudes;
    amplitudes.axes.assign(space_.axes().size(), 0);
    amplitudes.interaction = 1;
    const zero_model::Kernel kernel(space_.axes(), amplitudes);
    return kernel.of_rest(a, b) + kernel.of_axes(*a.arm, *b.arm);
  }

  Surface surface_;
  Study study_;
  zero_model::ModelSpace space_;
};

TEST_F(KernelTest, TheInteractionIsNearOnlyWhereEverythingIsNear) {
  const zero_model::Site here = site(1, 0, 8);
  EXPECT_DOUBLE_EQ(interaction(here, here), 1);
  const double smaller = interaction(here, site(1, 0, 6)), other_value = interaction(here, site(1, 1, 8)),
               stage = interaction(here, site(2, 0, 8));
  for (const double one : {smaller, other_value, stage}) EXPECT_LT(one, 1);
  EXPECT_LT(interaction(here, site(1, 1, 6)), std::min(smaller, other_value));
  EXPECT_LT(interaction(here, site(2, 0, 64)), 0.2 * stage);
}

TEST_F(KernelTest, GivesASymmetricPositiveSemidefiniteMatrix) {
  std::vector<zero_model::Site> sites;
  for (const int stage : {1, 2}) {
    for (const size_t value : {0, 1}) {
      for (const int64_t m : {1, 2, 3, 5, 8, 40}) sites.push_back(site(stage, value, m));
    }
  }
  const Eigen::Index n = static_cast<Eigen::Index>(sites.size());
  Eigen::MatrixXd k(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < n; ++j) {
      k(i, j) = interaction(sites[static_cast<size_t>(i)], sites[static_cast<size_t>(j)]);
    }
  }
  EXPECT_LT((k - k.transpose()).norm(), 1e-12);
  EXPECT_GT(Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(k).eigenvalues().minCoeff(), -1e-9);
}

}  // namespace
}  // namespace dsat::tests
