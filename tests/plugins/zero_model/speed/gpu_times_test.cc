// The model of a step's time on steps that were measured: a GPT of 86 million parameters, the real DeepSpeed, one H100
// (docs/real-deepspeed.md). Up to some 25 samples the host takes longer to launch a step than the device to run it.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "plugins/searchers.h"
#include "zero_model/speed/speed_model.h"
#include "zero_model/speed/time_model.h"

namespace dsat::tests {
namespace {

using Measured = std::vector<std::pair<int64_t, double>>;  // micro batch, us of a step

class GpuTimes : public ::testing::Test {
 protected:
  static Surface one_device() {
    Surface surface;
    surface.world_size = 1;
    return surface;
  }
  GpuTimes() : space_(make_study(one_device(), small_space({2}))) {}

  zero_model::Point point(int64_t m) { return {space_.arm(zero_model::Configuration{2, {0, 0}}), m}; }
  zero_model::TimeModel fitted(const Measured& measured) {
    std::vector<zero_model::TimeObservation> times;
    for (const auto& [m, us] : measured) times.push_back({point(m), us});
    zero_model::TimeModel model(space_, zero_model::StepPhase::total, zero_model::speed_amplitudes(space_.axes()));
    model.fit(times, true);
    return model;
  }
  zero_model::Prediction at(const zero_model::TimeModel& model, int64_t m) { return model.predict({point(m)}).front(); }

  zero_model::ModelSpace space_;
};

// Four samples take nearly as long as 32, as if both were one wave. No wave of such a size is right at 288 samples.
TEST_F(GpuTimes, WhatTheHostTakesIsNoWave) {
  const zero_model::TimeModel model = fitted(
      {{32, 63'600}, {4, 47'600}, {128, 219'700}, {300, 485'400}, {304, 492'300}, {307, 495'900}, {269, 437'200}});
  EXPECT_EQ(model.wave(), 0);
  EXPECT_NEAR(at(model, 288).mean, std::log(465'200), 0.01);
}

}  // namespace
}  // namespace dsat::tests
