// Where a profiler measures, and what three trials there are worth.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "fake_training.h"

namespace dsat::cost {
namespace {

// Early in backward the gradient of one large parameter is held besides the activations of the layers before it; later,
// nothing but all the activations: two lines, of which the higher counts.
struct TwoMoments : FakeTraining {
  double early_fixed = 45e6, early_activation = 1e6;

  double peak_of(const cost::Setup& setup) const {
    FakeTraining early = *this;
    early.fixed = early_fixed;
    early.activation = early_activation;
    return std::max(peak(setup), early.peak(setup));
  }
};

// The trials that a profiler makes at this stage. `peak` of a setup; out of memory above the device's.
template <class Peak>
std::vector<Observation> measure(const Inputs& inputs, const FakeTraining& training, int stage, int trials,
                                 const Peak& peak) {
  std::vector<Observation> observations;
  for (int i = 0; i < trials; ++i) {
    const MemoryFit fit = fit_memory(inputs, observations);
    const int64_t micro_batch = next_to_measure(fit, training.setup(stage, 1), trials - i);
    const cost::Setup setup = training.setup(stage, micro_batch);
    const bool fits = peak(setup) <= training.device;
    observations.push_back({setup, !fits, fits ? std::optional<double>(peak(setup)) : std::nullopt});
  }
  return observations;
}

TEST(NextToMeasureTest, GoesFromTheBeginningOfTheLineTowardsTheCeiling) {
  const FakeTraining training;
  const auto seen = measure(training.inputs(), training, 1, 3, [&](const cost::Setup& s) { return training.peak(s); });
  const int64_t ceiling = training.max_micro_batch(1);
  EXPECT_EQ(seen[0].setup.micro_batch, 2);
  EXPECT_GT(seen[1].setup.micro_batch, 2);
  EXPECT_LE(seen[1].setup.micro_batch, ceiling / 2 + 1);
  EXPECT_GT(seen[2].setup.micro_batch, ceiling / 2);
  EXPECT_LE(seen[2].setup.micro_batch, ceiling);
}

TEST(NextToMeasureTest, HalvesAfterOutOfMemory) {
  const FakeTraining training;
  const cost::Setup here = training.setup(1, 1);
  for (const int64_t left : {1, 2}) {
    EXPECT_EQ(next_to_measure(fit_memory(training.inputs(), {{training.setup(1, 9), true, {}}}), here, left), 4);
    EXPECT_EQ(next_to_measure(fit_memory(training.inputs(), {{training.setup(1, 1), true, {}}}), here, left), 1);
  }
}

TEST(NextToMeasureTest, LooksFarAndThenDoublesWithoutADevice) {
  const FakeTraining training;
  const cost::Setup here = training.setup(1, 1);
  Inputs unknown = training.inputs();
  unknown.device_memory_bytes.reset();
  EXPECT_EQ(next_to_measure(fit_memory(unknown, {}), here, 2), 2);
  EXPECT_EQ(next_to_measure(fit_memory(unknown, {}), here, 1), 16);
  EXPECT_EQ(next_to_measure(fit_memory(unknown, {training.trial(1, 2)}), here, 2), 16);
  EXPECT_EQ(next_to_measure(fit_memory(unknown, {training.trial(1, 2), training.trial(1, 16)}), here, 1), 32);
  EXPECT_EQ(next_to_measure(fit_memory(unknown, {training.trial(1, 2), {training.setup(1, 9), true, {}}}), here, 1), 8);
}

// All that it has to go by is one forward pass, which sees less than backward needs.
TEST(NextToMeasureTest, ATrialThatStaysAloneFitsAndShowsTheSlope) {
  for (const double activation : {0.437e6, 3.29e6, 11.71e6, 60e6}) {
    for (int stage = 0; stage <= 3; ++stage) {
      FakeTraining training;
      training.activation = activation;
      const MemoryFit fit = fit_memory(training.inputs(), {});
      const int64_t micro_batch = next_to_measure(fit, training.setup(stage, 1), 1);
      EXPECT_LE(micro_batch, training.max_micro_batch(stage));
      EXPECT_LE(micro_batch, 32);
      EXPECT_GE(micro_batch, std::min<int64_t>({32, 2, training.max_micro_batch(stage)}));
      if (activation < 1e6) {
        EXPECT_EQ(micro_batch, 32);
      }
      if (activation == 3.29e6) {
        const MemoryFit measured = fit_memory(training.inputs(), {training.trial(stage, micro_batch)});
        EXPECT_NEAR(activation_bytes_per_sample(measured).value, activation, 0.25 * activation) << stage;
      }
    }
  }
}

TEST(NextToMeasureTest, ATrialThatStaysAloneDaresNothingWithoutAForwardPass) {
  const FakeTraining training;
  Inputs inputs = training.inputs();
  inputs.activation_bytes_at_micro_batch_1.reset();
  EXPECT_EQ(next_to_measure(fit_memory(inputs, {}), training.setup(1, 1), 1), 2);
}

TEST(NextToMeasureTest, ThreeTrialsAtOneStageFindTheCeilingsOfAllStagesAndSizesExactly) {
  int cases = 0, exact = 0;
  for (const double activation : {0.437e6, 1.013e6, 3.29e6, 11.71e6}) {
    for (int stage = 0; stage <= 3; ++stage) {
      FakeTraining training;
      training.activation = activation;
      const auto seen =
          measure(training.inputs(), training, stage, 3, [&](const cost::Setup& s) { return training.peak(s); });
      const MemoryFit fit = fit_memory(training.inputs(), seen);
      for (int other = 0; other <= 3; ++other) {
        for (const int64_t ranks : {1, 2, 4}) {
          cost::Setup setup = training.setup(other, 1);
          setup.data_parallel_size = ranks;
          int64_t truth = 0;
          for (setup.micro_batch = 1; training.peak(setup) <= training.device; ++setup.micro_batch) ++truth;
          const double predicted = micro_batch_ceiling(fit, setup).value;
          EXPECT_NEAR(predicted, static_cast<double>(truth), 1) << activation << " " << stage << " " << other;
          exact += predicted == static_cast<double>(truth) ? 1 : 0;
          ++cases;
        }
      }
    }
  }
  EXPECT_GE(exact, 0.85 * cases);  // some ceilings lie six times as far as what was measured
}

TEST(NextToMeasureTest, ASteeperLineFartherOutIsFound) {
  TwoMoments training;
  training.fixed = 1e6;
  training.activation = 4e6;
  const auto peak = [&](const cost::Setup& setup) { return training.peak_of(setup); };
  const auto seen = measure(training.inputs(), training, 2, 3, peak);
  for (const Observation& observation : seen) EXPECT_FALSE(observation.out_of_memory);
  const MemoryFit fit = fit_memory(training.inputs(), seen);
  for (int stage = 0; stage <= 3; ++stage) {
    const auto truth = static_cast<double>(training.max_micro_batch(stage));
    EXPECT_NEAR(micro_batch_ceiling(fit, training.setup(stage, 1)).value, truth, 1) << stage;
  }
}

// Only the flat beginning was seen: the interval has room for a line through zero.
TEST(NextToMeasureTest, TheIntervalForeseesASteeperLine) {
  const FakeTraining training;
  const MemoryFit fit = fit_memory(training.inputs(), {training.trial(1, 2), training.trial(1, 10)});
  const Interval peak = predict_peak(fit, training.setup(1, 40));
  EXPECT_GT(peak.high - peak.value, 2 * (peak.value - peak.low));
}

TEST(FixedBytesByForwardTest, IsWhatTheFormulaLeaves) {
  const FakeTraining training;
  const cost::Setup setup = training.setup(2, 1);
  const double forward = 2e6;
  const double peak =
      model_state_bytes(training.inputs().size, setup) + buffer_bytes(training.inputs().size, setup) + 40e6 + forward;
  const Interval fixed = fixed_bytes_by_forward(training.inputs().size, setup, peak, forward);
  EXPECT_NEAR(fixed.value, 40e6, 1e6);
  EXPECT_LT(fixed.low, 40e6);
  EXPECT_GT(fixed.high, 40e6 + 4 * training.inputs().size.largest_layer_params);
  EXPECT_EQ(fixed_bytes_by_forward(training.inputs().size, setup, 0, 0).low, 0);
  EXPECT_THROW(fixed_bytes_by_forward(training.inputs().size, setup, -1, 0), Error);
}

TEST(FixedBytesByForwardTest, ReplacesTheGuess) {
  FakeTraining training;
  training.fixed = 90e6;
  Inputs inputs = training.inputs();
  const cost::Setup one = training.setup(1, 1);
  const double before = std::abs(predict_peak(fit_memory(inputs, {}), one).value - training.peak(one));
  inputs.fixed_bytes = Interval{90e6, 85e6, 95e6};
  EXPECT_LT(std::abs(predict_peak(fit_memory(inputs, {}), one).value - training.peak(one)), before / 5);
  inputs.fixed_bytes = Interval{-1, 0, 0};
  EXPECT_THROW(fit_memory(inputs, {}), Error);
}

// Without a measured peak one forward pass is all that the line goes by.
TEST(NextToMeasureTest, AJumpIsBoundedWhereNoPeakWasReported) {
  FakeTraining training;
  training.activation = 1e5;
  Observation silent = training.trial(1, 2);
  silent.peak_bytes.reset();
  EXPECT_EQ(next_to_measure(fit_memory(training.inputs(), {silent}), training.setup(1, 1), 1), 32);
}

}  // namespace
}  // namespace dsat::cost
