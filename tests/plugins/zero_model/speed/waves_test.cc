// Waves of a device: the sizes that measurements leave open, and a phase whose time is a staircase.
#include "zero_model/speed/waves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "plugins/searchers.h"
#include "zero_model/speed/speed_model.h"
#include "zero_model/speed/time_model.h"

namespace dsat::tests {
namespace {

using ::testing::IsEmpty;
using zero_model::Point;
using zero_model::TimeModel;

TEST(Waves, ACountOfSamplesIsRoundedUpToWholeWaves) {
  EXPECT_EQ(zero_model::whole_waves(64, 64), 64);
  EXPECT_EQ(zero_model::whole_waves(65, 64), 128);
  EXPECT_NEAR(zero_model::whole_waves(3 * 6.7, 6.7), 20.1, 1e-9) << "a rounding error is no further wave";
  EXPECT_EQ(zero_model::whole_waves(65, 0), 65) << "no waves";
}

search::MicroBatches all_sizes() { return search::MicroBatches{config::Space()}; }

search::MicroBatches divisors_of(int64_t batch) {
  config::Space space;
  space.micro_batch_divides = batch;
  return search::MicroBatches(space);
}

// The range that holds a wave of this size.
zero_model::WaveRange range_of(double wave, std::vector<double> measured, const search::MicroBatches& allowed) {
  const double least = *std::max_element(measured.begin(), measured.end());
  for (const zero_model::WaveRange& range : zero_model::wave_ranges(std::move(measured), least, allowed)) {
    if (range.low <= wave && wave < range.high) return range;
  }
  return {};
}

TEST(Waves, RangesPartTheSizesThatMeasurementsTellApart) {
  const std::vector<zero_model::WaveRange> ranges = zero_model::wave_ranges({8, 32, 48, 32, 96}, 96, all_sizes());
  double shares = 0, end = 16;
  for (const zero_model::WaveRange& range : ranges) {
    shares += std::exp(range.log_prior);
    EXPECT_EQ(range.low, end) << "one begins where the last one ended";
    EXPECT_LE(range.low, range.wave);
    EXPECT_LT(range.wave, range.high);
    end = range.high;
  }
  EXPECT_EQ(end, 96);
  EXPECT_NEAR(shares, 1, 1e-9);
  // From 48 to 96 nothing lies between: two waves for 96, one for 48.
  EXPECT_NEAR(std::exp(ranges.back().log_prior), std::log(2) / std::log(6), 1e-9);
}

// A trial of the size that stands for a range has to settle half of it, down to the last size that is open.
TEST(Waves, ARangeIsHalvedByTheMiddleOfTheSizesAllowed) {
  EXPECT_EQ(range_of(50, {8, 32, 48, 96}, all_sizes()).wave, 72);
  EXPECT_EQ(range_of(64, {8, 32, 63, 65}, all_sizes()).wave, 64);
  EXPECT_EQ(range_of(1024, {1, 512, 1023, 1025}, all_sizes()).wave, 1024);
  EXPECT_EQ(range_of(20, {2, 4, 8, 16, 32}, divisors_of(96)).wave, 24);
  EXPECT_EQ(range_of(12, {2, 5, 10, 20}, divisors_of(80)).wave, 16);
  EXPECT_EQ(range_of(12, {2, 5, 10, 16}, divisors_of(80)).wave, 13) << "no size inside is allowed";
}

// One stage may fit many times what another one does. The stairs of the smaller one are not forgotten.
TEST(Waves, SizesBeginAtASixthOfTheSmallestStagesLargest) {
  const std::vector<double> measured{1, 2, 9, 11, 60, 100};
  EXPECT_NEAR(zero_model::wave_ranges(measured, 11, all_sizes()).front().low, 11.0 / 6, 1e-9);
  EXPECT_EQ(zero_model::wave_ranges(measured, 2, all_sizes()).front().low, 1);
  EXPECT_LE(zero_model::wave_ranges(measured, 2, all_sizes()).size(), 6 * measured.size());
}

TEST(Waves, AMeasurementInsideARangeDividesIt) {
  const zero_model::WaveRange range{60, 75, 67, 0};
  EXPECT_TRUE(zero_model::divides(67, range));
  EXPECT_TRUE(zero_model::divides(2 * 67, range)) << "two waves of 66, or three";
  EXPECT_TRUE(zero_model::divides(6 * 67, range));
  EXPECT_FALSE(zero_model::divides(60, range));
  EXPECT_FALSE(zero_model::divides(75, range));
  EXPECT_FALSE(zero_model::divides(59, range));
  EXPECT_FALSE(zero_model::divides(67, {})) << "no waves";
}

TEST(Waves, FewMeasurementsTellNoSizesApart) {
  EXPECT_THAT(zero_model::wave_ranges({}, 9, all_sizes()), IsEmpty());
  EXPECT_THAT(zero_model::wave_ranges({8, 8, 32, 48}, 48, all_sizes()), IsEmpty());
  EXPECT_THAT(zero_model::wave_ranges({1, 1, 1, 1, 1}, 1, all_sizes()), IsEmpty());
}

double staircase_us(double m) { return 700'000 * std::ceil(m / 64); }
double curve_us(double m) { return 10'000 * (m + 12); }

class PhaseInWaves : public ::testing::Test {
 protected:
  PhaseInWaves() : study_(make_study(surface_, small_space({1, 2}))), space_(study_) {}

  Point point(int64_t m, int stage = 1) {
    const std::vector<size_t> first(stage == 1 ? 1 : 2, 0);  // of each axis of the stage
    return {space_.arm(zero_model::Configuration{stage, first}), m};
  }
  void measure(const std::vector<int64_t>& micro_batches, double (*us_of)(double), int stage = 1) {
    for (const int64_t m : micro_batches) {
      const double noise = (samples_.size() % 3 == 0 ? 1 : -0.5) * 0.005;
      samples_.push_back({point(m, stage), us_of(static_cast<double>(m)) * (1 + noise)});
    }
  }
  TimeModel model() { return {space_, zero_model::StepPhase::forward, zero_model::speed_amplitudes(space_.axes())}; }
  TimeModel fitted(const std::vector<int64_t>& micro_batches, double (*us_of)(double)) {
    measure(micro_batches, us_of);
    TimeModel fitted = model();
    fitted.fit(samples_, true);
    return fitted;
  }
  double predicted_us(const TimeModel& model, int64_t m) { return std::exp(model.predict({point(m)}).front().mean); }

  Surface surface_;
  Study study_;
  zero_model::ModelSpace space_;
  std::vector<zero_model::TimeObservation> samples_;
};

// 64 is below 75, which took two waves: nothing but a staircase predicts that it takes as long as 32 does.
TEST_F(PhaseInWaves, AStaircaseIsContinuedWhereNothingWasMeasured) {
  const TimeModel model = fitted({1, 32, 75, 96, 80, 116}, staircase_us);
  EXPECT_GT(model.wave(), 58);
  EXPECT_LT(model.wave(), 75);
  EXPECT_NEAR(predicted_us(model, 57), 700'000, 70'000);
  EXPECT_NEAR(predicted_us(model, 112), 1'400'000, 70'000);
}

TEST_F(PhaseInWaves, MeasurementsAtAnEndFixIt) {
  const TimeModel model = fitted({1, 32, 75, 96, 64, 66}, staircase_us);
  EXPECT_GE(model.wave(), 64);
  EXPECT_LT(model.wave(), 66);
}

// A fit that keeps the scales must not keep a wave that its newest measurement refutes: it would be a straggler.
TEST_F(PhaseInWaves, AMeasurementThatRefutesTheWaveIsNoStraggler) {
  TimeModel model = fitted({1, 32, 60, 75, 80, 96, 116}, staircase_us);
  EXPECT_GT(model.wave(), 60);
  EXPECT_LT(model.wave(), 75);
  measure({65}, staircase_us);
  model.fit(samples_, false);
  EXPECT_LT(model.wave(), 65);
  EXPECT_NEAR(predicted_us(model, 65), 1'400'000, 70'000);
}

TEST_F(PhaseInWaves, NeighboursOfAnEndDoNotHideIt) {
  const TimeModel model = fitted({1,  2,  3,  5,  8,  11, 16, 20, 24, 29, 32, 37, 40,  44,  48,  52,
                                  60, 62, 63, 64, 65, 66, 68, 70, 75, 80, 88, 96, 104, 110, 116, 125},
                                 staircase_us);
  EXPECT_GE(model.wave(), 64);
  EXPECT_LT(model.wave(), 65);
}

TEST_F(PhaseInWaves, SizesOfAnotherStageDoNotHideAnEnd) {
  measure({1, 2, 30, 70, 75, 80}, staircase_us, 1);
  measure({450, 480, 500}, staircase_us, 2);
  TimeModel model = this->model();
  model.fit(samples_, true);
  EXPECT_GE(model.wave(), 40) << "80 samples are two waves, 500 more than six";
  EXPECT_LT(model.wave(), 70);
  EXPECT_LT(predicted_us(model, 50), 850'000);
}

TEST_F(PhaseInWaves, ASmoothCurveHasNone) {
  const TimeModel model = fitted({1, 32, 75, 96, 80, 116}, curve_us);
  EXPECT_EQ(model.wave(), 0);
  EXPECT_NEAR(predicted_us(model, 57), curve_us(57), 0.03 * curve_us(57));
}

}  // namespace
}  // namespace dsat::tests
