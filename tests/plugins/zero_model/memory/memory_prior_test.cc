// What is believed of a sample's activations and of the device before any trial has run.
#include <gtest/gtest.h>

#include "plugins/searchers.h"
#include "zero_model/choice/surrogate.h"

namespace dsat::tests {
namespace {

Study study_with(const Json& profile) {
  Study study = make_study(Surface(), small_space({0, 1, 2, 3}));
  study.device_memory_bytes.reset();
  study.profile = profile;
  return study;
}

Json profile_of(double activation_bytes) {
  return {{"num_params", 1e9},
          {"activation_bytes_per_sample",
           {{"value", activation_bytes}, {"low", activation_bytes / 2}, {"high", activation_bytes * 2}}}};
}

TEST(MemoryPriorTest, ActivationsAreThoseOfTheProfileAndAsMuchAgainIsPossible) {
  const auto small = zero_model::memory_prior(study_with(profile_of(1e8)));
  const auto large = zero_model::memory_prior(study_with(profile_of(4e8)));
  EXPECT_GT(small.activation_bytes, 1e8) << "a training step holds more than a forward pass";
  EXPECT_LT(small.activation_bytes, 2e8);
  EXPECT_DOUBLE_EQ(large.activation_bytes, 4 * small.activation_bytes);
  EXPECT_DOUBLE_EQ(large.activation_deviation, 4 * small.activation_deviation);
}

TEST(MemoryPriorTest, WithoutAProfileADeviceHoldsSomeDozensOfSamples) {
  Study study = study_with(Json());
  study.device_memory_bytes = 64'000'000'000;
  const auto prior = zero_model::memory_prior(study);
  EXPECT_DOUBLE_EQ(prior.activation_bytes, 1e9);
  EXPECT_DOUBLE_EQ(prior.activation_deviation, 1e9) << "nobody knows";
}

TEST(MemoryPriorTest, TheDeviceIsTheStudysElseTheProfiles) {
  Json profile = profile_of(1e8);
  profile["device_memory_bytes"] = 40e9;
  Study study = study_with(profile);
  EXPECT_EQ(zero_model::memory_prior(study).device_bytes, 40e9);
  study.device_memory_bytes = 16'000'000'000;
  EXPECT_EQ(zero_model::memory_prior(study).device_bytes, 16e9);
  EXPECT_FALSE(zero_model::memory_prior(study_with(Json())).device_bytes.has_value());
}

}  // namespace
}  // namespace dsat::tests
