// How alike two points are in what no formula knows.
#include "zero_model/gaussian/kernel.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "plugins/searchers.h"

namespace dsat::tests {
namespace {

class LikenessOfPoints : public ::testing::Test {
 protected:
  LikenessOfPoints() : study_(make_study(surface_, small_space({1, 2}))), lattice_(study_) {}

  guided::Site site(int stage, size_t value, int64_t micro_batch) {
    const size_t axes = lattice_.space().stage(stage)->axes.size();
    std::vector<size_t> choice(axes, 0);
    if (axes > 0) choice[0] = value;
    return guided::site_of({lattice_.arm(guided::Configuration{stage, choice}), micro_batch});
  }
  // Only what everything does together.
  double together(const guided::Site& a, const guided::Site& b) const {
    guided::Amplitudes amplitudes;
    amplitudes.knobs.assign(lattice_.knobs().size(), 0);
    amplitudes.together = 1;
    const guided::Kernel kernel(lattice_.knobs(), amplitudes);
    return kernel.of_rest(a, b) + kernel.of_knobs(*a.arm, *b.arm);
  }

  Surface surface_;
  Study study_;
  guided::Lattice lattice_;
};

TEST_F(LikenessOfPoints, WhatPointsDoTogetherIsNearOnlyWhereAllIsNear) {
  const guided::Site here = site(1, 0, 8);
  EXPECT_DOUBLE_EQ(together(here, here), 1);
  const double smaller = together(here, site(1, 0, 6)), knob = together(here, site(1, 1, 8)),
               stage = together(here, site(2, 0, 8));
  for (const double one : {smaller, knob, stage}) EXPECT_LT(one, 1);
  EXPECT_LT(together(here, site(1, 1, 6)), std::min(smaller, knob));
  EXPECT_LT(together(here, site(2, 0, 64)), 0.2 * stage);
}

TEST_F(LikenessOfPoints, ItIsACovariance) {
  std::vector<guided::Site> sites;
  for (const int stage : {1, 2}) {
    for (const size_t value : {0, 1}) {
      for (const int64_t m : {1, 2, 3, 5, 8, 40}) sites.push_back(site(stage, value, m));
    }
  }
  const Eigen::Index n = static_cast<Eigen::Index>(sites.size());
  Eigen::MatrixXd k(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < n; ++j) {
      k(i, j) = together(sites[static_cast<size_t>(i)], sites[static_cast<size_t>(j)]);
    }
  }
  EXPECT_LT((k - k.transpose()).norm(), 1e-12);
  EXPECT_GT(Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(k).eigenvalues().minCoeff(), -1e-9);
}

}  // namespace
}  // namespace dsat::tests
