// The model of the study's objective: how a metric follows from the time of a micro step. Made-up times that follow one
// cause.
#include "zero_model/speed/speed_model.h"

#include <gtest/gtest.h>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/world.h"
#include "plugins/searchers.h"

namespace dsat::tests {
namespace {

using zero_model::Point;
using zero_model::SpeedModel;

// Micro steps of 90 ms, and an optimizer step that takes as long as ten of them. A latency is that of the whole step.
TEST(SpeedModel, TheOptimizersStepIsSharedByTheMicroSteps) {
  constexpr double kMicroStep = 90'000, kOptimizerStep = 900'000;
  config::Space axes = small_space({1});
  axes.stages[0].axes = {{config::kAccumulationKey, {1, 4, 16, 32}}};
  const Study study = make_study(Surface(), axes);
  zero_model::ModelSpace space(study);
  const auto at = [&](size_t choice) { return Point{space.arm(zero_model::Configuration{1, {choice}}), 8}; };
  for (const std::string metric : {"throughput", "latency"}) {
    const auto value = [&](const Point& point) {
      const double latency_us = space.accumulation(point) * kMicroStep + kOptimizerStep;
      return metric == "latency" ? latency_us : 1e6 * space.samples_per_step(point) / latency_us;
    };
    SpeedModel model(space, metric, metric == "throughput");
    model.fit({{at(0), value(at(0))}, {at(1), value(at(1))}, {at(2), value(at(2))}}, true);
    EXPECT_NEAR(model.predict({at(3)}).front().mean, model.objective_of(value(at(3))), 0.03) << metric;
  }
}

// FLOPS_per_gpu is one device's: twice the devices are no twice the metric.
TEST(SpeedModel, AMetricOfOneDeviceDoesNotGrowWithTheirNumber) {
  config::Space axes = small_space({1});
  axes.stages[0].axes = {{config::kNumGpusKey, {1, 2, 4}}};
  Study study = make_study(Surface(), axes);
  config::set(study.base_config, config::kNumNodesKey, 1);
  zero_model::ModelSpace space(study);
  const auto at = [&](size_t choice) { return Point{space.arm(zero_model::Configuration{1, {choice}}), 8}; };
  ASSERT_EQ(space.devices(at(0)) * 4, space.devices(at(2)));
  SpeedModel model(space, "FLOPS_per_gpu", true);
  model.fit({{at(0), 5e13}, {at(1), 5e13}}, true);
  EXPECT_NEAR(model.predict({at(2)}).front().mean, model.objective_of(5e13), 0.1);
}

// A script may print its time in seconds, milliseconds or anything else.
TEST(SpeedModel, APrintedTimeHasNoUnit) {
  config::Space axes = small_space({0});
  axes.micro_batch_divides = 16;
  zero_model::ModelSpace space(make_study(Surface(), axes));
  const auto at = [&](int64_t micro_batch) { return Point{space.arm(zero_model::Configuration{0, {0}}), micro_batch}; };
  const auto gain = [&](double unit) {
    SpeedModel model(space, "printed", false);
    model.fit({{at(1), 3 * unit}}, true);
    return model.predict({at(4)}).front().mean - model.objective_of(3 * unit);
  };
  EXPECT_NEAR(gain(1), gain(1e3), 1e-6);
  EXPECT_GT(gain(1), 0.1);
}

}  // namespace
}  // namespace dsat::tests
