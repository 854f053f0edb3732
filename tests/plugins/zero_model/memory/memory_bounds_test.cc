// Bounds that trials imply: which point needs no more memory than which, and what follows for probabilities and draws.
// The space has buckets at all stages, overlap from stage 2 on, and an axis of which nothing is known.
#include "cost/posterior/memory_bounds.h"

#include <gtest/gtest.h>

#include "cost/posterior/memory_mixture.h"
#include "plugins/searchers.h"
#include "zero_model/space/space.h"

namespace dsat::tests {
namespace {

using zero_model::MemoryBounds;
using zero_model::Point;

config::Space space_with_unknown_axis() {
  config::Space space = small_space({1, 2, 3});
  for (config::StageSpace& stage : space.stages) {
    stage.axes.push_back({"zero_optimization.reduce_scatter", {true, false}});
    stage.axes.push_back({"zero_optimization.contiguous_gradients", {true, false}});
  }
  return space;
}

class MemoryBoundsTest : public ::testing::Test {
 protected:
  MemoryBoundsTest()
      : surface_{1e9},
        study_(make_study(surface_, space_with_unknown_axis())),
        space_(study_),
        bounds_(space_.axes()) {}

  // An arm of stage 2: bucket 0, 1, 2 from small to large; overlap, scatter and contiguous gradients 0 = true.
  const zero_model::Arm& arm(size_t bucket, size_t overlap = 1, size_t scatter = 0, size_t contiguous = 0) {
    return *space_.arm(zero_model::Configuration{2, {bucket, overlap, scatter, contiguous}});
  }
  // An arm of stage 1 or 3.
  const zero_model::Arm& other_stage(int stage, size_t bucket) {
    std::vector<size_t> choice{bucket};
    if (stage == 3) choice.push_back(1);
    choice.insert(choice.end(), {0, 0});
    return *space_.arm(zero_model::Configuration{stage, choice});
  }

  // A device of 16 GB, and what a sample is expected to take.
  static zero_model::MemoryPrior prior(double activation_bytes, double deviation) {
    return {16e9, activation_bytes, deviation};
  }

  Surface surface_;
  Study study_;
  zero_model::ModelSpace space_;
  MemoryBounds bounds_;
};

TEST_F(MemoryBoundsTest, WhatFittedFitsWithSmallerBatchesSmallerBucketsAndWithoutOverlap) {
  bounds_.add({&arm(1, 0), 109}, true);
  EXPECT_EQ(bounds_.of(arm(1, 0)).fits, 109);
  EXPECT_EQ(bounds_.of(arm(0, 0)).fits, 109);
  EXPECT_EQ(bounds_.of(arm(1, 1)).fits, 109);
  EXPECT_EQ(bounds_.of(arm(1, 0, 1)).fits, 109);  // reduce_scatter takes no memory
  EXPECT_EQ(bounds_.of(arm(2, 0)).fits, 0);
  EXPECT_EQ(bounds_.of(arm(1, 0, 0, 1)).fits, 0);  // of another value of this axis nothing is known
  EXPECT_EQ(bounds_.of(arm(1, 0)).too_big, std::numeric_limits<int64_t>::max());
}

TEST_F(MemoryBoundsTest, WhatRanOutRunsOutWithLargerBatchesLargerBucketsAndOverlap) {
  bounds_.add({&arm(1, 1), 52}, false);
  EXPECT_EQ(bounds_.of(arm(1, 1)).too_big, 52);
  EXPECT_EQ(bounds_.of(arm(2, 0)).too_big, 52);
  EXPECT_EQ(bounds_.of(arm(0, 1)).too_big, std::numeric_limits<int64_t>::max());
}

// The user's own value may lie below all values of its axis, and need less than the lowest of them.
TEST(MemoryBoundsOutsideAnAxis, ALowerValueThanAllProvesNothingToFit) {
  config::Space axes = small_space({3});
  axes.stages[0].axes.push_back({"zero_optimization.stage3_max_live_parameters", {100000000, 300000000, 1000000000}});
  const Study study = make_study(Surface(), axes);
  zero_model::ModelSpace space(study);
  const zero_model::Arm& lowest = *space.arm(zero_model::Configuration{3, {0, 1, 0}});
  Json config = study.base_config;
  config["zero_optimization"] = {
      {"stage", 3}, {"reduce_bucket_size", 5000000}, {"overlap_comm", false}, {"stage3_max_live_parameters", 10000000}};
  const zero_model::Arm& below = *space.arm(config);
  ASSERT_FALSE(below.in_space);
  MemoryBounds bounds(space.axes());
  bounds.add({&below, 64}, true);
  EXPECT_EQ(bounds.of(below).fits, 64);
  EXPECT_EQ(bounds.of(lowest).fits, 0);
  bounds.add({&below, 80}, false);
  EXPECT_EQ(bounds.of(lowest).too_big, 80) << "it needs no less";
}

TEST_F(MemoryBoundsTest, OfTwoThatContradictEachOtherTheOneThatCompletedStands) {
  bounds_.add({&arm(1), 50}, false);
  bounds_.add({&arm(1), 60}, true);
  EXPECT_EQ(bounds_.of(arm(1)).fits, 60);
  EXPECT_EQ(bounds_.of(arm(1)).too_big, 61);
}

// 1e9 parameters on 4 ranks: stage 2 frees 1.5 GB of gradients, stage 3 as much of parameters.
TEST_F(MemoryBoundsTest, AHigherStageCountsWhereItsBuffersAreSmallerThanWhatItDivides) {
  bounds_.add({&other_stage(1, 0), 40}, true);
  EXPECT_EQ(bounds_.of(arm(0)).fits, 40);
  EXPECT_EQ(bounds_.of(arm(2)).fits, 0);  // a bucket of 1 GB and a copy of it may take more than stage 2 frees
  bounds_.clear();
  EXPECT_EQ(bounds_.of(arm(0)).fits, 0);
  bounds_.add({&arm(0), 40}, false);
  EXPECT_EQ(bounds_.of(other_stage(1, 2)).too_big, 40);
  EXPECT_EQ(bounds_.of(other_stage(3, 0)).too_big, std::numeric_limits<int64_t>::max());
}

TEST_F(MemoryBoundsTest, TheMixtureAllButTrustsThemWhateverPeaksSay) {
  zero_model::MemoryMixture memory(space_.axes(), prior(1e8, 4e7));
  std::vector<zero_model::MemoryObservation> known{{{&arm(1), 109}, true, {}}, {{&arm(1), 128}, false, {}}};
  for (const int64_t m : {110, 111, 113}) known.push_back({{&arm(2), m}, false, {}});
  memory.fit(known, true);
  const std::vector<zero_model::MemoryPoint> points{{&arm(1), 96}, {&arm(0), 108}, {&arm(1), 130}, {&arm(2), 120}};
  Random random(5);
  const Eigen::VectorXd drawn = memory.draw_fits(points, 2000, random).rowwise().mean();
  for (size_t i = 0; i < points.size(); ++i) {
    const bool fits = i < 2;
    EXPECT_NEAR(memory.probability_of_fitting(points[i]), fits ? 1 : 0, 0.01) << i;
    EXPECT_NEAR(drawn[static_cast<Eigen::Index>(i)], fits ? 1 : 0, 0.01) << i;
  }
}

// A job may break the rules: stage 2 fails where stage 1 fitted. Then nothing follows across stages any more.
TEST_F(MemoryBoundsTest, AContradictionEndsWhatFollowsAcrossStages) {
  zero_model::MemoryMixture memory(space_.axes(), prior(1e8, 4e7));
  const Point lower{&other_stage(1, 0), 48}, higher{&other_stage(3, 0), 48};
  memory.fit({{lower, true, {}}}, true);
  ASSERT_GT(memory.probability_of_fitting(higher), 0.95);
  memory.fit({{lower, true, {}}, {{&other_stage(3, 1), 40}, false, {}}, {{&other_stage(3, 1), 36}, false, {}}}, true);
  EXPECT_LT(memory.probability_of_fitting(higher), 0.5);
  EXPECT_GT(memory.probability_of_fitting(lower), 0.95);
}

// Failures that no hypothesis explains make memory without a formula likely; it knows nothing of buckets.
TEST_F(MemoryBoundsTest, BuffersThatExceedTheDeviceNeverFit) {
  const zero_model::Arm& large = arm(2, 0);
  zero_model::MemoryMixture memory(space_.axes(), {0.8 * large.buffer_bytes, 1e6, 5e5});
  memory.fit({{{&arm(0), 64}, true, {}}, {{&arm(0), 16}, false, {}}, {{&arm(1), 4}, false, {}}}, true);
  EXPECT_LT(memory.probability_of_fitting({&large, 1}), 0.01);
  Random random(5);
  EXPECT_LT(memory.draw_fits({{&large, 1}}, 2000, random).mean(), 0.01);
}

// The peak of small micro batches lies in the optimizer's step here: flat, and a line from some size on.
TEST_F(MemoryBoundsTest, FlatPeaksOfSmallMicroBatchesDoNotHideALine) {
  zero_model::MemoryMixture memory(space_.axes(), prior(8e8, 3e8));
  std::vector<zero_model::MemoryObservation> known;
  for (const int64_t m : {1, 2, 4, 16, 26, 34, 40, 48}) {
    known.push_back({{&arm(0), m}, true, std::max(4.7e9, 1.6e9 + 9e7 * static_cast<double>(m))});
  }
  memory.fit(known, true);
  EXPECT_GT(memory.probability_of_fitting({&arm(0), 90}), 0.9);
}

}  // namespace
}  // namespace dsat::tests
