// What fits, after a few trials: surprises shift the weight between the hypotheses about memory.
// Peaks are made up to follow one hypothesis or to contradict it.
#include "cost/posterior/memory_mixture.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plugins/searchers.h"
#include "zero_model/space/space.h"

namespace dsat::tests {
namespace {

class MemoryMixtureTest : public ::testing::Test {
 protected:
  MemoryMixtureTest()
      : study_(make_study(surface_, small_space({0, 1, 2, 3}))),
        space_(study_),
        formula_(space_.axes(), prior(), zero_model::formula_hypothesis(space_.axes())),
        memory_(space_.axes(), prior()) {}

  zero_model::MemoryPrior prior() const {
    zero_model::MemoryPrior prior;
    prior.device_bytes = 16e9;
    prior.activation_bytes = 1e8;
    prior.activation_deviation = 4e7;
    return prior;
  }
  zero_model::Point point(int64_t micro_batch) { return {space_.arm(zero_model::Configuration{1, {0}}), micro_batch}; }
  zero_model::MemoryObservation fits(int64_t micro_batch, double peak_bytes) {
    return {point(micro_batch), true, peak_bytes};
  }
  zero_model::MemoryObservation fails(int64_t micro_batch) { return {point(micro_batch), false, std::nullopt}; }

  Surface surface_;
  Study study_;
  zero_model::ModelSpace space_;
  zero_model::MemoryModel formula_;
  zero_model::MemoryMixture memory_;
};

TEST_F(MemoryMixtureTest, ASizeThatSurelyFittedAndFailedIsNotFollowedByOneJustBelow) {
  const double base = formula_.peak(point(2)).mean;
  memory_.fit({fits(2, base)}, true);
  ASSERT_GT(memory_.probability_of_fitting(point(84)), 0.8);
  memory_.fit({fits(2, base), fails(84)}, true);
  EXPECT_LT(memory_.probability_of_fitting(point(76)), 0.7);
  EXPECT_GT(memory_.probability_of_fitting(point(8)), 0.9);
}

TEST_F(MemoryMixtureTest, AFailureThatNothingExplainsCastsDoubtOnItsNeighboursOnly) {
  std::vector<zero_model::MemoryObservation> known;
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
TEST_F(MemoryMixtureTest, GrowthByDoublingsIsLearnedFromAFewPeaks) {
  std::vector<zero_model::MemoryObservation> known;
  for (const int64_t m : {1, 2, 4, 8}) known.push_back(fits(m, 16e9 * (0.3 + 0.1 * std::log2(m))));
  formula_.fit(known, true);
  EXPECT_LT(formula_.probability_of_fitting(point(48)), 0.4);
  memory_.fit(known, true);
  EXPECT_GT(memory_.probability_of_fitting(point(48)), 0.7);
  EXPECT_LT(memory_.probability_of_fitting(point(256)), 0.3);
}

TEST_F(MemoryMixtureTest, OneFailureThatThePeaksRuleOutLeavesLargerSizesWorthALook) {
  std::vector<zero_model::MemoryObservation> known;
  for (const int64_t m : {1, 2, 4}) known.push_back(fits(m, 2e9 + 1e8 * static_cast<double>(m)));
  known.push_back(fails(12));
  memory_.fit(known, true);
  EXPECT_GT(memory_.probability_of_fitting(point(40)), 0.3);
  EXPECT_LT(memory_.probability_of_fitting(point(12)), 0.3);
}

// Activations that are not recomputed may take many times as much: trials with others do not show that these fit.
TEST_F(MemoryMixtureTest, AFailureIsRuledOutOnlyByTrialsWithTheSameRecomputation) {
  config::Space axes = small_space({1});
  axes.stages[0].axes.push_back({"activation_checkpointing.partition_activations", {true, false}});
  const Study study = make_study(surface_, axes);
  zero_model::ModelSpace space(study);
  zero_model::MemoryMixture memory(space.axes(), prior());
  const auto at = [&](size_t bucket, size_t partition, int64_t micro_batch) {
    return zero_model::Point{space.arm(zero_model::Configuration{1, {bucket, partition}}), micro_batch};
  };
  std::vector<zero_model::MemoryObservation> known;
  for (const int64_t m : {2, 4, 8, 16, 60}) known.push_back({at(0, 1, m), true, 2e9 + 1e8 * static_cast<double>(m)});
  known.push_back({at(0, 0, 6), false, std::nullopt});
  memory.fit(known, true);
  EXPECT_LT(memory.probability_of_fitting(at(0, 0, 20)), 0.1);
  EXPECT_LT(memory.probability_of_fitting(at(1, 0, 20)), 0.1) << "a larger bucket needs no less";
  EXPECT_GT(memory.probability_of_fitting(at(0, 1, 50)), 0.95);
  known.push_back({at(0, 0, 2), true, 2.2e9});
  memory.fit(known, true);
  EXPECT_GT(memory.probability_of_fitting(at(0, 0, 20)), 0.3) << "now the failure is ruled out";
}

TEST_F(MemoryMixtureTest, SeveralFailuresAboveOneSizeAreACeiling) {
  std::vector<zero_model::MemoryObservation> known;
  for (const int64_t m : {1, 2, 4, 60}) known.push_back(fits(m, 2e9 + 1e8 * static_cast<double>(m)));
  for (const int64_t m : {100, 80, 70}) known.push_back(fails(m));
  memory_.fit(known, true);
  EXPECT_LT(memory_.probability_of_fitting(point(90)), 0.3);
  EXPECT_GT(memory_.probability_of_fitting(point(50)), 0.9);
}

// Two sizes cannot show whether memory grows in proportion or by doublings. In proportion, 40 samples are far too many.
TEST_F(MemoryMixtureTest, DrawsForConcurrentTrialsDoubtTheFormulaMore) {
  zero_model::MemoryPrior prior;
  prior.device_bytes = 100e9;
  prior.activation_bytes = 5e9;
  prior.activation_deviation = 2e9;
  zero_model::MemoryMixture memory(space_.axes(), prior);
  memory.fit({{point(2), true, 30e9}, {point(4), true, 40e9}}, true);
  const double predicted = memory.probability_of_fitting(point(40));
  Random random(3);
  const double drawn = memory.draw_fits({point(40)}, 4000, random).mean();
  EXPECT_LT(predicted, 0.1);
  EXPECT_GT(drawn, 3 * predicted);
  EXPECT_LT(drawn, 0.5);
}

TEST_F(MemoryMixtureTest, WhatAnOutOfMemoryMessageShowsIsALowerBoundOfThePeak) {
  zero_model::MemoryObservation failure = fails(120);
  formula_.fit({fits(2, 2e9), failure}, true);
  const double without = formula_.peak(point(120)).mean;
  failure.peak_above_bytes = 40e9;
  formula_.fit({fits(2, 2e9), failure}, true);
  EXPECT_LT(without, 25e9);
  EXPECT_GT(formula_.peak(point(120)).mean, 38e9);
}

TEST_F(MemoryMixtureTest, AnAllocatorThatRetriedIsNearItsCeiling) {
  zero_model::MemoryObservation silent{point(100), true};
  memory_.fit({silent}, true);
  const double without = memory_.probability_of_fitting(point(125));
  silent.allocator_retries = 3;
  memory_.fit({silent}, true);
  EXPECT_LT(memory_.probability_of_fitting(point(125)), without - 0.2);
  EXPECT_GT(memory_.probability_of_fitting(point(100)), 0.9);
}

// 0.9e9 parameters at stage 0: Adam's states in fp32 are 7.2 GB of 16, in 8 bit 1.8 GB.
TEST_F(MemoryMixtureTest, SmallerOptimizerStatesThanAdamsAreBelievedOnceTheyFit) {
  Surface large;
  large.num_params = 0.9e9;
  const Study study = make_study(large, small_space({0}));
  zero_model::ModelSpace space(study);
  zero_model::MemoryMixture memory(space.axes(), prior());
  const auto at = [&](int64_t m) { return zero_model::Point{space.arm(zero_model::Configuration{0, {0}}), m}; };
  memory.fit({{at(2), true}}, true);
  EXPECT_LT(memory.probability_of_fitting(at(46)), 0.3);
  memory.fit({{at(2), true}, {at(36), true}}, true);
  EXPECT_GT(memory.probability_of_fitting(at(46)), 0.5);
}

// The large bucket alone, twice with overlap, takes 20 of the 27 GB: that it fails at any micro batch is no news.
// By the forward pass 8 samples fill the device. 32 fitted, with peaks that nobody reported.
TEST_F(MemoryMixtureTest, AForwardThatShowsFarTooMuchGivesWayToWhatFitted) {
  zero_model::MemoryPrior much = prior();
  much.activation_bytes = 2e9;
  much.activation_deviation = 1e9;
  zero_model::MemoryMixture memory(space_.axes(), much);
  std::vector<zero_model::MemoryObservation> known;
  for (const int64_t m : {2, 16, 32}) known.push_back({point(m), true, std::nullopt});
  memory.fit(known, true);
  EXPECT_GT(memory.probability_of_fitting(point(36)), 0.8);
  EXPECT_LT(memory.probability_of_fitting(point(128)), 0.75) << "it fills the device somewhere";
}

TEST_F(MemoryMixtureTest, FailuresWithLargeBucketsSayLittleOfSmallOnes) {
  Surface small;
  config::Space buckets;
  buckets.stages.push_back({2,
                            {{"zero_optimization.reduce_bucket_size", {5000000, 50000000, 5000000000}},
                             {"zero_optimization.overlap_comm", {true, false}}}});
  small.device_memory = 27e9;
  const Study study = make_study(small, buckets);
  zero_model::ModelSpace space(study);
  zero_model::MemoryPrior prior;
  prior.device_bytes = 27e9;
  prior.activation_bytes = 1e8;
  prior.activation_deviation = 4e7;
  zero_model::MemoryMixture memory(space.axes(), prior);
  const auto at = [&](size_t bucket, int64_t m) {
    return zero_model::Point{space.arm(zero_model::Configuration{2, {bucket, 0}}), m};
  };
  std::vector<zero_model::MemoryObservation> known{{at(0, 2), true}, {at(0, 40), true}};
  memory.fit(known, true);
  const double before = memory.probability_of_fitting(at(0, 120));
  for (const int64_t m : {100, 80, 64, 52}) known.push_back({at(2, m), false});
  memory.fit(known, true);
  EXPECT_GT(memory.probability_of_fitting(at(0, 120)), before - 0.1);
  EXPECT_GT(memory.probability_of_fitting(at(1, 120)), before - 0.15);
  EXPECT_LT(memory.probability_of_fitting(at(2, 40)), 0.3);
}

}  // namespace
}  // namespace dsat::tests
