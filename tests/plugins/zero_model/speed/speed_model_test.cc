// The model of the study's objective: what it learns from forward, backward and step that the metric alone does not
// show. Made-up times that follow one cause.
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
using zero_model::SpeedObservation;

// An optimizer step that takes as long as ten micro steps.
constexpr double kForward = 30'000, kBackward = 60'000, kStep = 900'000;

TEST(SpeedModel, PhasesTellHowTimeGrowsWithAccumulation) {
  config::Space axes = small_space({1});
  axes.stages[0].axes = {{config::kAccumulationKey, {1, 4, 32}}};
  const Study study = make_study(Surface(), axes);
  zero_model::ModelSpace space(study);
  const auto at = [&](size_t choice) { return Point{space.arm(zero_model::Configuration{1, {choice}}), 8}; };
  const auto throughput = [&](const Point& point) {
    const double micro_steps = space.accumulation(point);
    return 1e6 * space.samples_per_step(point) / (micro_steps * (kForward + kBackward) + kStep);
  };
  const auto trial = [&](const Point& point) {
    return SpeedObservation{point, throughput(point), kForward, kBackward, kStep};
  };
  SpeedModel model(space, "throughput", true);
  model.fit({trial(at(0)), trial(at(1))}, true);
  EXPECT_NEAR(model.predict({at(2)}).front().mean, model.objective_of(throughput(at(2))), 0.03);
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
  for (const bool has_phases : {true, false}) {
    SpeedModel model(space, "FLOPS_per_gpu", true);
    SpeedObservation seen{at(0), 5e13, {}, {}, {}};
    // A short optimizer step, since more devices share that one.
    if (has_phases) seen = {at(0), 5e13, kForward, kBackward, kStep / 1000};
    SpeedObservation other = seen;
    other.point = at(1);
    model.fit({seen, other}, true);
    EXPECT_NEAR(model.predict({at(2)}).front().mean, model.objective_of(5e13), 0.1) << has_phases;
  }
}

}  // namespace
}  // namespace dsat::tests
