// Waves of a device: the sizes that measurements leave open, and a phase whose time is a staircase.
#include "zero_model/speed/waves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plugins/searchers.h"
#include "zero_model/speed/phase_model.h"
#include "zero_model/speed/speed_model.h"

namespace dsat::tests {
namespace {

using ::testing::IsEmpty;
using zero_model::PhaseModel;
using zero_model::Point;

TEST(Waves, ACountOfSamplesIsRoundedUpToWholeWaves) {
  EXPECT_EQ(zero_model::whole_waves(64, 64), 64);
  EXPECT_EQ(zero_model::whole_waves(65, 64), 128);
  EXPECT_NEAR(zero_model::whole_waves(3 * 6.7, 6.7), 20.1, 1e-9) << "a rounding error is no further wave";
  EXPECT_EQ(zero_model::whole_waves(65, 0), 65) << "no waves";
}

TEST(Waves, CellsPartTheSizesThatMeasurementsTellApart) {
  const std::vector<zero_model::WaveCell> cells = zero_model::wave_cells({8, 32, 48, 32, 96}, 99);
  double shares = 0;
  for (const zero_model::WaveCell& cell : cells) {
    shares += std::exp(cell.log_prior);
    EXPECT_GT(cell.wave, 16);
    EXPECT_LT(cell.wave, 96);
  }
  EXPECT_NEAR(shares, 1, 1e-9);
  // From 48 to 96 nothing lies between: two waves for 96, one for 48.
  EXPECT_NEAR(cells.front().wave, std::sqrt(48.0 * 96), 1e-9);
  EXPECT_NEAR(std::exp(cells.front().log_prior), std::log(2) / std::log(6), 1e-9);
  EXPECT_EQ(zero_model::wave_cells({8, 32, 48, 32, 96}, 2).size(), 2u);
}

TEST(Waves, FewMeasurementsTellNoSizesApart) {
  EXPECT_THAT(zero_model::wave_cells(std::vector<double>{}, 9), IsEmpty());
  EXPECT_THAT(zero_model::wave_cells({8, 8, 32, 48}, 9), IsEmpty());
  EXPECT_THAT(zero_model::wave_cells({1, 1, 1, 1, 1}, 9), IsEmpty());
}

class PhaseInWaves : public ::testing::Test {
 protected:
  PhaseInWaves() : study_(make_study(surface_, small_space({1}))), space_(study_) {}

  Point point(int64_t m) { return {space_.arm(zero_model::Configuration{1, {0}}), m}; }
  PhaseModel fitted(const std::vector<int64_t>& micro_batches, double (*us_of)(double)) {
    std::vector<zero_model::TimeObservation> samples;
    for (const int64_t m : micro_batches) {
      const double noise = (samples.size() % 3 == 0 ? 1 : -0.5) * 0.005;
      samples.push_back({point(m), us_of(static_cast<double>(m)) * (1 + noise)});
    }
    PhaseModel model(space_, zero_model::StepPhase::forward, zero_model::speed_amplitudes(space_.axes()));
    model.fit(samples, true);
    return model;
  }
  double predicted_us(const PhaseModel& model, int64_t m) {
    return std::exp(model.predict({point(m)}, model.cross({point(m)})).front().mean);
  }

  Surface surface_;
  Study study_;
  zero_model::ModelSpace space_;
};

double staircase_us(double m) { return 700'000 * std::ceil(m / 64); }
double curve_us(double m) { return 10'000 * (m + 12); }

// 64 is below 75, which took two waves: nothing but a staircase predicts that it takes as long as 32 does.
TEST_F(PhaseInWaves, AStaircaseIsContinuedWhereNothingWasMeasured) {
  const PhaseModel model = fitted({1, 32, 75, 96, 80, 116}, staircase_us);
  EXPECT_GT(model.wave(), 58);
  EXPECT_LT(model.wave(), 75);
  EXPECT_NEAR(predicted_us(model, 57), 700'000, 70'000);
  EXPECT_NEAR(predicted_us(model, 112), 1'400'000, 70'000);
}

TEST_F(PhaseInWaves, MeasurementsAtAnEndFixIt) {
  const PhaseModel model = fitted({1, 32, 75, 96, 64, 66}, staircase_us);
  EXPECT_GE(model.wave(), 64);
  EXPECT_LT(model.wave(), 66);
}

TEST_F(PhaseInWaves, ASmoothCurveHasNone) {
  const PhaseModel model = fitted({1, 32, 75, 96, 80, 116}, curve_us);
  EXPECT_EQ(model.wave(), 0);
  EXPECT_NEAR(predicted_us(model, 57), curve_us(57), 0.03 * curve_us(57));
}

}  // namespace
}  // namespace dsat::tests
