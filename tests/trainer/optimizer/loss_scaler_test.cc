// When the loss scale rises, when it falls, and when training has diverged.
// Overflows are given one by one, as DeepSpeed's scaler would see them.
#include "optimizer/loss_scaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace dsat::trainer {
namespace {

using ::testing::ElementsAre;

LossScaleSettings dynamic() {
  LossScaleSettings s;
  s.enabled = true;
  s.initial_power = 4;
  s.window = 2;
  s.hysteresis = 1;
  return s;
}

// The scale after each attempted update; 'x': it overflowed.
std::vector<double> scales(LossScaler& scaler, const char* updates) {
  std::vector<double> values;
  for (const char* update = updates; *update != '\0'; ++update) {
    scaler.update(*update == 'x');
    values.push_back(scaler.scale());
  }
  return values;
}

std::vector<double> scales(const LossScaleSettings& settings, const char* updates) {
  LossScaler scaler(settings);
  return scales(scaler, updates);
}

TEST(LossScalerTest, DoublesAfterEachWindowWithoutOverflow) {
  EXPECT_THAT(scales(dynamic(), "....."), ElementsAre(16, 32, 32, 64, 64));
}

TEST(LossScalerTest, AnOverflowHalvesAndBeginsTheWindowAnew) {
  EXPECT_THAT(scales(dynamic(), ".x..x.."), ElementsAre(16, 8, 8, 16, 8, 8, 16));
}

TEST(LossScalerTest, HysteresisIsUsedUpFirst) {
  LossScaleSettings s = dynamic();
  s.hysteresis = 2;
  // The rise restores it, an update without overflow alone does not.
  EXPECT_THAT(scales(s, "x.x..xx"), ElementsAre(16, 16, 8, 8, 16, 16, 8));
  s.consecutive_hysteresis = true;
  EXPECT_THAT(scales(s, "x.xx"), ElementsAre(16, 16, 16, 8));
}

TEST(LossScalerTest, DivergenceIsAnErrorAtTheSmallestScale) {
  LossScaleSettings s = dynamic();
  s.min_scale = 8;
  LossScaler scaler(s);
  EXPECT_THAT(scales(scaler, "x"), ElementsAre(8));
  EXPECT_THROW(scaler.update(true), Error);
}

TEST(LossScalerTest, AFixedScaleAndNone) {
  LossScaleSettings s = dynamic();
  s.fixed = 100;
  EXPECT_THAT(scales(s, "x.."), ElementsAre(100, 100, 100));
  EXPECT_THAT(scales(LossScaleSettings(), "x.."), ElementsAre(1, 1, 1));
}

TEST(LossScalerTest, GoesOnWhereItWasSaved) {
  LossScaleSettings s = dynamic();
  s.hysteresis = 2;
  LossScaler whole(s), first(s), second(s);
  scales(whole, "..x.");
  scales(first, "..x.");
  second.restore(first.state());
  EXPECT_EQ(scales(second, ".x.x.."), scales(whole, ".x.x.."));
}

TEST(LossScalerTest, BeginsAnewAfterATrainingWithoutADynamicScale) {
  LossScaleSettings fixed = dynamic();
  fixed.fixed = 100;
  for (const LossScaleSettings& before : {LossScaleSettings(), fixed}) {
    LossScaler saved(before), scaler(dynamic());
    scales(saved, "...");
    scaler.restore(saved.state());
    EXPECT_THAT(scales(scaler, "..x"), ElementsAre(16, 32, 16));
  }
}

}  // namespace
}  // namespace dsat::trainer
