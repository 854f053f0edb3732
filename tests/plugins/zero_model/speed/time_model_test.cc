// The model of a step's time: which part of the kernel it blames for what trials show, and how it extrapolates.
// Made-up times that follow one cause, under points that differ in several.
#include "zero_model/speed/time_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

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

// A machine that changes while configurations of known speed are measured. Two of them compete, one measured early and
// one late; others of the same arms are measured before, between and after them, one of them again.
class DriftingMachine : public PhaseOfTiles {
 protected:
  // The early one takes 4 % longer than the late one. `slower`: the machine, by the number of the trial.
  std::vector<zero_model::TimeObservation> trials(const std::function<double(int)>& slower) {
    const Point often = point(1, 0, 32);
    const std::vector<Point> points{often,           point(1, 0, 8),  early(),         point(1, 1, 48), often,
                                    point(0, 1, 40), point(0, 0, 64), often,           point(1, 0, 64), point(1, 1, 16),
                                    point(0, 0, 16), often,           point(2, 0, 56), late(),          often,
                                    point(0, 1, 24), often,           point(2, 0, 40)};
    std::vector<zero_model::TimeObservation> trials;
    for (const Point& at : points) {
      const int order = static_cast<int>(trials.size());
      zero_model::TimeObservation trial = sample(at, trials.size());
      if (at.arm == early().arm) trial.time_us *= 1.04;
      trials.push_back({at, trial.time_us * slower(order), static_cast<double>(order)});
    }
    return trials;
  }
  Point early() { return point(0, 0, 56); }
  Point late() { return point(2, 0, 56); }

  // How much longer the early one takes than the late one, as the model sees it.
  double early_over_late(const std::vector<zero_model::TimeObservation>& trials) {
    model_.fit(trials, true);
    const std::vector<zero_model::Prediction> predictions = model_.predict({early(), late()});
    return predictions[0].mean - predictions[1].mean;
  }
  static std::vector<zero_model::TimeObservation> at_one_moment(std::vector<zero_model::TimeObservation> trials) {
    for (zero_model::TimeObservation& trial : trials) trial.order = 0;
    return trials;
  }

  TimeModel model_{space_, zero_model::StepPhase::total, zero_model::speed_amplitudes(space_.axes())};
};

TEST_F(DriftingMachine, AfterAJumpConfigurationsCompareAsBeforeIt) {
  const auto measured = trials([](int order) { return order < 11 ? 1 : 1.2; });
  EXPECT_NEAR(early_over_late(measured), 0.04, 0.02);
  EXPECT_EQ(model_.trend().kind, zero_model::Trend::Kind::jump);
  EXPECT_EQ(model_.trend().jump_at, 11);
  EXPECT_LT(early_over_late(at_one_moment(measured)), 0) << "without their order the late one looks slower";
}

TEST_F(DriftingMachine, OnASlowRampConfigurationsCompareToo) {
  const auto measured = trials([](int order) { return 1 + 0.3 * order / 17; });
  EXPECT_NEAR(early_over_late(measured), 0.04, 0.025);
  EXPECT_NE(model_.trend().kind, zero_model::Trend::Kind::none);
  EXPECT_LT(early_over_late(at_one_moment(measured)), 0) << "without their order the late one looks slower";
}

TEST_F(DriftingMachine, PredictionsAreOfTheMachineAsItIsNow) {
  const auto measured = trials([](int order) { return order < 11 ? 1 : 2; });
  model_.fit(measured, true);
  EXPECT_NEAR(model_.predict({late()}).front().mean, std::log(2 * 1000.0 * 58), 0.03);
  model_.fit(measured, false);
  EXPECT_NEAR(model_.predict({late()}).front().mean, std::log(2 * 1000.0 * 58), 0.03) << "the trend is kept";
  Random random(1, 2, 3);
  const Eigen::MatrixXd draws = model_.draw({early(), late()}, 1000, random);
  EXPECT_NEAR(draws.row(0).mean() - draws.row(1).mean(), 0.04, 0.02);
}

TEST_F(DriftingMachine, ASteadyMachineHasNoTrend) {
  const auto measured = trials([](int) { return 1; });
  const double with_orders = early_over_late(measured);
  EXPECT_EQ(model_.trend().kind, zero_model::Trend::Kind::none);
  EXPECT_EQ(with_orders, early_over_late(at_one_moment(measured)));
}

TEST_F(DriftingMachine, OneSlowTrialIsNoTrend) {
  for (int slow = 0; slow < 18; ++slow) {
    const auto measured = trials([&](int order) { return order == slow ? 1.15 : 1; });
    const double with_orders = early_over_late(measured);
    EXPECT_EQ(model_.trend().kind, zero_model::Trend::Kind::none) << slow;
    EXPECT_EQ(with_orders, early_over_late(at_one_moment(measured))) << slow;
  }
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
