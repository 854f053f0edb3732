// The model of a step's time: which part of the kernel it blames for what trials show, and how it extrapolates.
// Made-up times that follow one cause, under points that differ in several.
#include "zero_model/speed/time_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "dsat/config/batch.h"
#include "dsat/config/world.h"
#include "plugins/searchers.h"
#include "zero_model/speed/speed_model.h"
#include "zero_model/speed/step_time.h"

namespace dsat::tests {
namespace {

using zero_model::Point;
using zero_model::TimeModel;

class PhaseOfTiles : public ::testing::Test {
 protected:
  PhaseOfTiles() : study_(make_study(surface_, small_space({3}))), space_(study_) {}

  Point point(size_t bucket, size_t overlap, int64_t micro_batch) {
    return {space_.arm(zero_model::Configuration{3, {bucket, overlap}}), micro_batch};
  }
  // Axes have no effect; what is no multiple of 8 takes a tenth longer. Runs differ by 0.2 %.
  zero_model::TimeObservation sample(const Point& at, size_t run) const {
    const double m = static_cast<double>(at.micro_batch);
    const double noise = (run % 3 == 0 ? 1 : -0.5) * 0.002;
    return {at, 1000 * (m + 2) * (at.micro_batch % 8 == 0 ? 1 : 1.1) * (1 + noise)};
  }

  Surface surface_;
  Study study_;
  zero_model::ModelSpace space_;
};

// Each trial has other axis values, which might be to blame too.
TEST_F(PhaseOfTiles, BlamesTheMicroBatchAndNotEachTrial) {
  const std::vector<Point> points{point(2, 0, 1),  point(2, 0, 2),  point(0, 1, 31), point(1, 0, 56), point(0, 0, 56),
                                  point(1, 1, 60), point(2, 1, 56), point(2, 0, 53), point(0, 1, 56), point(1, 0, 60),
                                  point(0, 0, 48), point(1, 0, 48), point(2, 1, 51)};
  std::vector<zero_model::TimeObservation> samples;
  for (const Point& at : points) samples.push_back(sample(at, samples.size()));
  TimeModel model(space_, zero_model::StepPhase::total, zero_model::speed_amplitudes(space_.axes()));
  model.fit(samples, true);
  const Point asked = point(2, 0, 56);  // an arm measured elsewhere only
  const zero_model::Prediction prediction = model.predict({asked}).front();
  EXPECT_NEAR(prediction.mean, std::log(1000.0 * 58), 0.01);
  EXPECT_LT(std::sqrt(prediction.variance), 0.01);
}

// While trials are few, constants are drawn and kept by how well they explain the trials.
TEST_F(PhaseOfTiles, DrawsOfAYoungStudyFollowItsTrials) {
  std::vector<zero_model::TimeObservation> samples;
  for (const int64_t m : {8, 16, 32}) samples.push_back(sample(point(1, 0, m), samples.size()));
  TimeModel model(space_, zero_model::StepPhase::total, zero_model::speed_amplitudes(space_.axes()));
  model.fit(samples, true);
  Random random(1, 2, 3);
  const Eigen::MatrixXd draws = model.draw({point(1, 0, 16), point(1, 0, 96)}, 1000, random);
  EXPECT_NEAR(draws.row(0).mean(), std::log(1000.0 * 18), 0.02);
  EXPECT_NEAR(draws.row(1).mean(), std::log(1000.0 * 98), 0.4) << "three times as far as was measured";
}

class PipelineAxis : public ::testing::Test {
 protected:
  PipelineAxis() : space_(study()) {}

  static Study study() {
    config::Space axes = small_space({1});
    axes.stages[0].axes = {{config::kPipelineStagesKey, {1, 2, 4}}};
    Study study = make_study(Surface(), axes);
    study.base_config[config::kAccumulationKey] = 8;
    study.base_config["autotuning"] = {{"num_gpus", 4}, {"num_nodes", 1}};
    return study;
  }
  Point at(size_t choice, int64_t micro_batch) {
    return {space_.arm(zero_model::Configuration{1, {choice}}), micro_batch};
  }

  zero_model::ModelSpace space_;
};

TEST_F(PipelineAxis, AStageHasItsShareOfTheModelAndWaitsInTheBubble) {
  const Surface surface;
  for (const size_t choice : {0, 1, 2}) {
    const double stages = std::pow(2, choice);
    const zero_model::Load load = load_of(space_, at(choice, 4));
    EXPECT_EQ(load.ranks, 4 / stages);
    EXPECT_EQ(load.params, surface.num_params / stages);
    EXPECT_DOUBLE_EQ(load.compute, (8 + stages - 1) / 8 / stages);
  }
}

TEST_F(PipelineAxis, TwiceTheStagesTakeAboutHalfTheTimeOfAMicroStep) {
  for (const size_t measured : {size_t{0}, size_t{1}}) {
    TimeModel model(space_, zero_model::StepPhase::forward, zero_model::speed_amplitudes(space_.axes()));
    model.fit({{at(measured, 4), 40'000}, {at(measured, 8), 76'000}}, true);
    const Point asked = at(measured + 1, 8);
    const zero_model::Prediction prediction = model.predict({asked}).front();
    const double expected = measured == 0 ? 76'000 / 2.0 * 9 / 8 : 76'000 / 2.0 * 11 / 9;
    EXPECT_NEAR(prediction.mean, std::log(expected), 0.02) << measured;
  }
}

// Passes that take longer than in proportion to the micro batch contradict every constant of the step time model. Whole
// steps of its fit would go back and forth, and predict a pass of 16 samples 200 times as long as one of 4.
TEST(TimeModel, ExtrapolatesSensiblyWhereTrialsContradictTheStepTimeModel) {
  Surface surface;
  surface.num_params = 1e9;
  const Study study = make_study(surface, small_space({3}));
  zero_model::ModelSpace space(study);
  const auto point = [&](int64_t m) { return Point{space.arm(zero_model::Configuration{3, {0, 0}}), m}; };
  TimeModel model(space, zero_model::StepPhase::backward, zero_model::speed_amplitudes(space.axes()));
  model.fit({{point(2), 30'000}, {point(4), 63'000}}, true);
  const zero_model::Prediction prediction = model.predict({point(16)}).front();
  EXPECT_NEAR(prediction.mean, std::log(4 * 63'000.0), 0.4);
}

}  // namespace
}  // namespace dsat::tests
