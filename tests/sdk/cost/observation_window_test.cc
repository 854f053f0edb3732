// A long study's trials: what is kept is bounded, and as good as all of them.
#include "dsat/cost/observation_window.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fake_training.h"

namespace dsat::cost {
namespace {

TEST(ObservationWindowTest, AShortStudyIsKeptWhole) {
  const FakeTraining training;
  ObservationWindow window;
  std::vector<Observation> all{training.trial(1, 2), training.trial(1, 8), training.trial(1, 500),
                               training.trial(3, 4)};
  for (const Observation& observation : all) window.add(observation);
  const std::vector<Observation> kept = window.observations();
  ASSERT_EQ(kept.size(), all.size());
  const MemoryFit a = fit_memory(training.inputs(), all), b = fit_memory(training.inputs(), kept);
  EXPECT_EQ(activation_bytes_per_sample(a).value, activation_bytes_per_sample(b).value);
  EXPECT_EQ(fixed_bytes(a).value, fixed_bytes(b).value);
}

TEST(ObservationWindowTest, OfManyTrialsOfASetupThoseThatDecideAreKept) {
  const FakeTraining training;
  ObservationWindow window;
  for (int64_t micro_batch = 200; micro_batch >= 1; --micro_batch) window.add(training.trial(1, micro_batch));
  window.add({training.setup(1, 3), false, std::nullopt});
  const std::vector<Observation> kept = window.observations();
  const int64_t truth = training.max_micro_batch(1);
  EXPECT_LE(kept.size(), 6u);
  const auto has = [&](int64_t micro_batch) {
    return std::any_of(kept.begin(), kept.end(),
                       [&](const Observation& o) { return o.setup.micro_batch == micro_batch; });
  };
  EXPECT_TRUE(has(1));
  EXPECT_TRUE(has(truth));
  EXPECT_TRUE(has(truth + 1));
  EXPECT_EQ(micro_batch_ceiling(fit_memory(training.inputs(), kept), training.setup(1, 1)).value, truth);
}

TEST(ObservationWindowTest, SetupsThatWereNotSeenForLongLeaveButTheFirstStays) {
  const FakeTraining training;
  ObservationWindow window(4);
  for (int i = 0; i < 1000; ++i) {
    Observation observation = training.trial(1, 8);
    observation.setup.reduce_bucket_elements = 1e6 + i;
    window.add(observation);
  }
  const std::vector<Observation> kept = window.observations();
  ASSERT_EQ(kept.size(), 4u);
  EXPECT_EQ(kept[0].setup.reduce_bucket_elements, 1e6);
  EXPECT_EQ(kept[1].setup.reduce_bucket_elements, 1e6 + 997);
  EXPECT_EQ(kept[3].setup.reduce_bucket_elements, 1e6 + 999);
}

TEST(ObservationWindowTest, OfARepeatedTrialTheHigherPeakCounts) {
  const FakeTraining training;
  Observation first = training.trial(1, 8), again = first;
  *again.peak_bytes += 1000;
  ObservationWindow window;
  for (const Observation& observation : {first, again, first}) window.add(observation);
  ASSERT_EQ(window.observations().size(), 1u);
  EXPECT_EQ(window.observations()[0].peak_bytes, again.peak_bytes);
}

}  // namespace
}  // namespace dsat::cost
