// The largest micro batch that fits and the probability of fitting: by prediction, bounded by what has been seen.
#include <gtest/gtest.h>

#include <cmath>

#include "fake_training.h"

namespace dsat::cost {
namespace {

TEST(MaxMicroBatchTest, TwoTrialsAtOneStageFindTheCeilingOfAll) {
  const FakeTraining training;
  const MemoryFit fit = fit_memory(training.inputs(), {training.trial(2, 8), training.trial(2, 16)});
  for (int stage = 0; stage <= 3; ++stage) {
    const Interval ceiling = micro_batch_ceiling(fit, training.setup(stage, 1));
    const double truth = static_cast<double>(training.max_micro_batch(stage));
    EXPECT_NEAR(ceiling.value, truth, 2) << "stage " << stage;
    EXPECT_LE(ceiling.low, truth);
    EXPECT_GE(ceiling.high, truth);
  }
}

TEST(MaxMicroBatchTest, TheMicroBatchOfTheSetupIsOfNoMatter) {
  const FakeTraining training;
  const MemoryFit fit = fit_memory(training.inputs(), {training.trial(2, 8)});
  EXPECT_EQ(micro_batch_ceiling(fit, training.setup(1, 1)).value,
            micro_batch_ceiling(fit, training.setup(1, 77)).value);
}

TEST(MaxMicroBatchTest, TrialsOfTheSameSetupBoundIt) {
  const FakeTraining training;
  const int64_t truth = training.max_micro_batch(1);
  const MemoryFit fit = fit_memory(training.inputs(), {training.trial(1, truth), training.trial(1, truth + 1)});
  const Interval ceiling = micro_batch_ceiling(fit, training.setup(1, 1));
  EXPECT_EQ(ceiling.value, truth);
  EXPECT_EQ(ceiling.low, truth);
  EXPECT_EQ(ceiling.high, truth);
}

TEST(MaxMicroBatchTest, WhatFittedOutweighsAnOutOfMemoryTrialBelowIt) {
  const FakeTraining training;
  const MemoryFit fit = fit_memory(training.inputs(), {training.trial(1, 60), {training.setup(1, 40), true, {}}});
  EXPECT_GE(micro_batch_ceiling(fit, training.setup(1, 1)).value, 60);
  EXPECT_EQ(probability_of_fitting(fit, training.setup(1, 40)), 1);
  EXPECT_NEAR(activation_bytes_per_sample(fit).value, training.activation, 0.3 * training.activation);
}

TEST(MaxMicroBatchTest, AModelThatDoesNotFitHasNone) {
  FakeTraining training;
  training.device = 50e6;
  const MemoryFit fit = fit_memory(training.inputs(), {});
  const Interval ceiling = micro_batch_ceiling(fit, training.setup(0, 1));
  EXPECT_EQ(ceiling.value, 0);
  EXPECT_EQ(ceiling.high, 0);
  // Optimizers have smaller states than their name says in 3 of 100 studies.
  EXPECT_LT(probability_of_fitting(fit, training.setup(0, 1)), 0.05);
}

// An engine may allocate no more than the model needs, whatever its buckets could hold.
TEST(MaxMicroBatchTest, WhatRanRefutesBuffersThatExceedTheDevice) {
  const Inputs inputs = inputs_from_profile({{"num_params", 25'000'000},
                                             {"trainable_num_params", 25'000'000},
                                             {"activation_mem_per_gpu", 12'000'000},
                                             {"device_memory_bytes", 1'000'000'000}});
  const auto setup = [&](int stage, int micro_batch) {
    return setup_from_config(
        {{"train_micro_batch_size_per_gpu", micro_batch}, {"zero_optimization", {{"stage", stage}}}}, 2,
        inputs.size.engine());
  };
  EXPECT_EQ(micro_batch_ceiling(fit_memory(inputs, {}), setup(1, 1)).high, 0);
  const MemoryFit fit = fit_memory(inputs, {{setup(1, 1), false, 352e6}, {setup(1, 2), false, 364e6}});
  for (const int stage : {1, 2}) EXPECT_NEAR(micro_batch_ceiling(fit, setup(stage, 1)).value, 50, 8) << stage;
}

TEST(MaxMicroBatchTest, OutOfMemoryAtOneLeavesNone) {
  const FakeTraining training;
  const MemoryFit fit = fit_memory(training.inputs(), {{training.setup(3, 1), true, {}}});
  EXPECT_EQ(micro_batch_ceiling(fit, training.setup(3, 1)).high, 0);
}

TEST(MaxMicroBatchTest, SamplesThatCostNothingMeetTheLimit) {
  FakeTraining training;
  training.activation = 0;
  const MemoryFit fit = fit_memory(training.inputs(), {training.trial(1, 2), training.trial(1, 1000)});
  const Interval ceiling = micro_batch_ceiling(fit, training.setup(1, 1));
  EXPECT_GE(ceiling.value, 1000);
  EXPECT_LE(ceiling.value, static_cast<double>(kMicroBatchLimit));
  EXPECT_TRUE(std::isfinite(ceiling.high));
}

TEST(MaxMicroBatchTest, WithoutADeviceMemoryOnlyTrialsBoundIt) {
  const FakeTraining training;
  Inputs inputs = training.inputs();
  inputs.device_memory_bytes.reset();
  const cost::Setup asked = training.setup(1, 1);

  Interval ceiling = micro_batch_ceiling(fit_memory(inputs, {}), asked);
  EXPECT_EQ(ceiling.value, 0);
  EXPECT_TRUE(std::isinf(ceiling.high));

  ceiling = micro_batch_ceiling(fit_memory(inputs, {training.trial(1, 8), {training.setup(1, 32), true, {}}}), asked);
  EXPECT_EQ(ceiling.value, 8);
  EXPECT_EQ(ceiling.low, 8);
  EXPECT_EQ(ceiling.high, 31);
}

TEST(ProbabilityTest, FallsFromOneToZeroAcrossTheCeiling) {
  const FakeTraining training;
  const MemoryFit fit = fit_memory(training.inputs(), {training.trial(2, 8), training.trial(2, 16)});
  double before = 1;
  for (int64_t micro_batch = 1; micro_batch <= 200; micro_batch += 7) {
    const double probability = probability_of_fitting(fit, training.setup(2, micro_batch));
    EXPECT_LE(probability, before + 1e-9) << micro_batch;
    EXPECT_GE(probability, 0);
    before = probability;
  }
  EXPECT_GT(probability_of_fitting(fit, training.setup(2, 30)), 0.99);
  EXPECT_LT(before, 0.01);
}

TEST(ProbabilityTest, TrialsOfTheSameSetupDecideIt) {
  const FakeTraining training;
  Inputs inputs = training.inputs();
  inputs.activation_bytes_at_micro_batch_1 = 100 * training.activation;  // a prior that would say no
  const MemoryFit fit = fit_memory(inputs, {{training.setup(1, 20), false, {}}, {training.setup(1, 30), true, {}}});
  EXPECT_EQ(probability_of_fitting(fit, training.setup(1, 20)), 1);
  EXPECT_EQ(probability_of_fitting(fit, training.setup(1, 5)), 1);
  EXPECT_EQ(probability_of_fitting(fit, training.setup(1, 30)), 0);
  EXPECT_EQ(probability_of_fitting(fit, training.setup(1, 31)), 0);
}

TEST(ProbabilityTest, WithoutADeviceMemoryOtherStagesTrialsStandIn) {
  const FakeTraining training;
  Inputs inputs = training.inputs();
  inputs.device_memory_bytes.reset();
  EXPECT_EQ(probability_of_fitting(fit_memory(inputs, {}), training.setup(1, 100'000)), 1);
  const std::vector<Observation> observations{training.trial(1, 8), training.trial(1, 16), training.trial(2, 500)};
  ASSERT_TRUE(observations.back().out_of_memory);
  const MemoryFit fit = fit_memory(inputs, observations);
  EXPECT_EQ(probability_of_fitting(fit, training.setup(3, 2)), 1);
  EXPECT_EQ(probability_of_fitting(fit, training.setup(0, 5000)), 0);
  const double between = probability_of_fitting(fit, training.setup(0, 100));
  EXPECT_GT(between, 0);
  EXPECT_LT(between, 1);
}

}  // namespace
}  // namespace dsat::cost
