// Trials that run side by side: draws from what is believed of many points together, and rounds that spread by them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "guided/guided.h"
#include "plugins/searchers.h"
#include "zero_model/choice/joint_samples.h"
#include "zero_model/gaussian/joint_normal.h"

namespace dsat::tests {
namespace {

TEST(NormalNumbers, HaveMeanAndCovarianceAsAsked) {
  guided::JointNormal joint{Eigen::VectorXd(2), Eigen::MatrixXd(2, 2)};
  joint.mean << 1, -2;
  joint.covariance << 4, 1, 1, 0.5;
  Random random(7);
  const Eigen::MatrixXd drawn = guided::draw(joint, 20001, random);  // odd: they are made two at a time
  const Eigen::VectorXd mean = drawn.rowwise().mean();
  const Eigen::MatrixXd about = drawn.colwise() - mean;
  EXPECT_LT((mean - joint.mean).norm(), 0.05);
  EXPECT_LT((about * about.transpose() / 20001 - joint.covariance).norm(), 0.1);
}

class Draws : public ::testing::Test {
 protected:
  Draws() : study_(make_study(surface_, small_space({1, 2}))), lattice_(study_), beliefs_(study_, lattice_) {
    learn(1, 2);
    learn(2, 4);
    beliefs_.update({});
  }

  guided::Point point(int stage, int64_t micro_batch) {
    const size_t axes = lattice_.space().stage(stage)->axes.size();
    return {lattice_.arm(guided::Configuration{stage, std::vector<size_t>(axes, 0)}), micro_batch};
  }

  void learn(int stage, int64_t micro_batch) {
    testing::Trial trial;
    trial.config = study_.base_config;
    const guided::Point at = point(stage, micro_batch);
    trial.config["zero_optimization"]["stage"] = stage;
    trial.config["train_micro_batch_size_per_gpu"] = micro_batch;
    const testing::Answer answer = surface_.answer(trial);
    beliefs_.learn(
        {static_cast<TrialId>(micro_batch), at, Outcome::completed, answer.metrics.at("throughput"), {}, {}, {}, {}});
  }

  Surface surface_;
  Study study_;
  guided::Lattice lattice_;
  guided::Beliefs beliefs_;
};

TEST_F(Draws, AgreeWithWhatIsBelievedOfEachPoint) {
  std::vector<guided::Point> points;
  for (const int64_t m : {4, 8, 16, 24, 32, 48}) points.push_back(point(1, m));
  const guided::JointDraws draws(beliefs_, points, 2000, Random(3));
  for (const guided::Point& at : points) {
    // Beyond what has run, draws doubt the whole extrapolation besides: six percent for each doubling.
    const double doublings = std::max(0.0, std::log2(static_cast<double>(at.micro_batch) / 4));  // 4 ran
    EXPECT_NEAR(draws.probability_of_fitting(at), std::exp(-0.06 * doublings) * beliefs_.expected_to_fit(at), 0.05)
        << at.micro_batch;
  }
}

// Two sizes cannot tell whether memory grows in proportion or by doublings: by the former 40 samples are far too many.
TEST_F(Draws, DoubtTheFormulaForMemoryMoreThanASingleTrialMay) {
  guided::MemoryPrior prior;
  prior.device_bytes = 100e9;
  prior.activation_bytes = 5e9;
  prior.activation_deviation = 2e9;
  guided::MemoryBelief memory(lattice_, prior);
  memory.fit({{point(1, 2), true, 30e9}, {point(1, 4), true, 40e9}}, true);
  const double believed = memory.probability_of_fitting(point(1, 40));
  Random random(3);
  const double drawn = memory.draw_fits({point(1, 40)}, 4000, random).mean();
  EXPECT_LT(believed, 0.1);
  EXPECT_GT(drawn, 3 * believed);
  EXPECT_LT(drawn, 0.5);
}

TEST_F(Draws, ATrialAddsNothingToItselfAndLittleToItsLike) {
  const guided::Point here = point(1, 16), like = point(1, 15), other = point(2, 32);
  const guided::JointDraws draws(beliefs_, {here, like, other}, 500, Random(3));
  const Eigen::ArrayXd none = draws.best_of({}), bar = draws.best_of({here});
  EXPECT_EQ(draws.gain(here, bar), 0);
  EXPECT_GT(draws.gain(like, none), 0);
  EXPECT_LT(draws.gain(like, bar), 0.3 * draws.gain(like, none));
  EXPECT_GT(draws.gain(other, bar), 0);
}

TEST_F(Draws, WhatHasRunFitsAndWhatRanOutOfMemoryDoesNot) {
  const guided::Point failed = point(1, 1000);
  beliefs_.learn({1000, failed, Outcome::out_of_memory, {}, {}, {}, {}, {}});
  beliefs_.update({});
  const guided::JointDraws draws(beliefs_, {point(1, 2), failed}, 100, Random(3));
  EXPECT_EQ(draws.probability_of_fitting(point(1, 2)), 1);
  EXPECT_EQ(draws.probability_of_fitting(failed), 0);
}

TEST_F(Draws, TheSameSeedDrawsTheSame) {
  const std::vector<guided::Point> points{point(1, 8), point(2, 16)};
  const guided::JointDraws one(beliefs_, points, 100, Random(3)), two(beliefs_, points, 100, Random(3));
  EXPECT_EQ(one.mean(points[1]), two.mean(points[1]));
}

// What is asked for at once, before any of it has ended.
class Round : public ::testing::Test {
 protected:
  std::vector<testing::Trial> first_round(const Surface& surface, int64_t slots) {
    Study study = make_study(surface, small_space({1, 2, 3}));
    study.limits.max_trials = 64;
    study.limits.max_concurrent_trials = slots;
    testing::Bench bench(testing::factory<Guided>(), "guided", study,
                         [surface](const testing::Trial& trial) { return surface.answer(trial); });
    bench.start();
    // The first ones go where surely all fits, since nothing is known; the round is what comes after.
    for (int64_t i = 0; i < slots && bench.step(); ++i) {
    }
    std::vector<testing::Trial> asked(bench.asked().begin() + slots, bench.asked().end());
    return asked;
  }
};

TEST_F(Round, SpreadsOverMicroBatchesAndStages) {
  const Surface surface;
  const std::vector<testing::Trial> round = first_round(surface, 12);
  ASSERT_GE(round.size(), 10u);
  std::set<int64_t> micro_batches;
  std::set<int> stages;
  std::set<std::string> all;
  for (const testing::Trial& trial : round) {
    micro_batches.insert(trial.config.at("train_micro_batch_size_per_gpu").get<int64_t>());
    stages.insert(trial.config.at("zero_optimization").at("stage").get<int>());
    all.insert(trial.config.dump());
  }
  EXPECT_GE(micro_batches.size(), 4u);
  EXPECT_GE(stages.size(), 2u);
  EXPECT_EQ(all.size(), round.size()) << "the same was asked for twice";
}

}  // namespace
}  // namespace dsat::tests
