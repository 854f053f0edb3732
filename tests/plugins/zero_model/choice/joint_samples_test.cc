// Samples of many points together agree with the predictions of each, and know what trials add to each other.
// The surrogate has learned two trials of a simple surface.
#include "zero_model/choice/joint_samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "plugins/searchers.h"

namespace dsat::tests {
namespace {

class JointSamplesTest : public ::testing::Test {
 protected:
  JointSamplesTest() : study_(make_study(surface_, small_space({1, 2}))), space_(study_), surrogate_(study_, space_) {
    learn(1, 2);
    learn(2, 4);
    surrogate_.update();
  }

  zero_model::Point point(int stage, int64_t micro_batch) {
    const size_t axes = space_.tuning_space().stage(stage)->axes.size();
    return {space_.arm(zero_model::Configuration{stage, std::vector<size_t>(axes, 0)}), micro_batch};
  }

  void learn(int stage, int64_t micro_batch) {
    testing::Trial trial;
    trial.config = study_.base_config;
    const zero_model::Point at = point(stage, micro_batch);
    trial.config["zero_optimization"]["stage"] = stage;
    trial.config["train_micro_batch_size_per_gpu"] = micro_batch;
    const testing::Answer answer = surface_.answer(trial);
    surrogate_.learn({static_cast<TrialId>(micro_batch), at, Outcome::completed, answer.metrics.at("throughput"), {}});
  }

  Surface surface_;
  Study study_;
  zero_model::ModelSpace space_;
  zero_model::Surrogate surrogate_;
};

TEST_F(JointSamplesTest, AgreeWithThePredictionOfEachPoint) {
  std::vector<zero_model::Point> points;
  for (const int64_t m : {4, 8, 16, 24, 32, 48}) points.push_back(point(1, m));
  const zero_model::JointSamples samples(surrogate_, points, 2000, Random(3));
  for (const zero_model::Point& at : points) {
    // Beyond what has run, samples also doubt the whole extrapolation: by six percent for each doubling.
    const double doublings = std::max(0.0, std::log2(static_cast<double>(at.micro_batch) / 4));  // 4 has run
    EXPECT_NEAR(samples.probability_of_fitting(at), std::exp(-0.06 * doublings) * surrogate_.expected_to_fit(at), 0.05)
        << at.micro_batch;
  }
}

TEST_F(JointSamplesTest, ATrialAddsNothingToItselfAndLittleToASimilarOne) {
  const zero_model::Point here = point(1, 16), similar = point(1, 15), other = point(2, 32);
  const zero_model::JointSamples samples(surrogate_, {here, similar, other}, 500, Random(3));
  const Eigen::ArrayXd none = samples.best_of({}), bar = samples.best_of({here});
  EXPECT_EQ(samples.gain(here, bar), 0);
  EXPECT_GT(samples.gain(similar, none), 0);
  EXPECT_LT(samples.gain(similar, bar), 0.3 * samples.gain(similar, none));
  EXPECT_GT(samples.gain(other, bar), 0);
}

TEST_F(JointSamplesTest, APointThatRanFitsAndOneThatRanOutOfMemoryDoesNot) {
  const zero_model::Point failed = point(1, 1000);
  surrogate_.learn({1000, failed, Outcome::out_of_memory, {}, {}});
  surrogate_.update();
  const zero_model::JointSamples samples(surrogate_, {point(1, 2), failed}, 100, Random(3));
  EXPECT_EQ(samples.probability_of_fitting(point(1, 2)), 1);
  EXPECT_EQ(samples.probability_of_fitting(failed), 0);
}

TEST_F(JointSamplesTest, TheSameSeedGivesTheSameSamples) {
  const std::vector<zero_model::Point> points{point(1, 8), point(2, 16)};
  const zero_model::JointSamples one(surrogate_, points, 100, Random(3)), two(surrogate_, points, 100, Random(3));
  EXPECT_EQ(one.mean(points[1]), two.mean(points[1]));
}

}  // namespace
}  // namespace dsat::tests
