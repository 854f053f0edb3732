// What a phase's model makes of what knobs and micro batch do.
#include "zero_model/speed/phase_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plugins/searchers.h"
#include "zero_model/speed/speed_model.h"

namespace dsat::tests {
namespace {

using guided::PhaseModel;
using guided::Point;

class PhaseOfTiles : public ::testing::Test {
 protected:
  PhaseOfTiles() : study_(make_study(surface_, small_space({3}))), lattice_(study_) {}

  Point point(size_t bucket, size_t overlap, int64_t micro_batch) {
    return {lattice_.arm(guided::Configuration{3, {bucket, overlap}}), micro_batch};
  }
  // Knobs do nothing; what is no multiple of 8 takes a tenth longer. Runs differ by 0.2 %.
  PhaseModel::Sample sample(const Point& at, size_t run) const {
    const double m = static_cast<double>(at.micro_batch);
    const double noise = (run % 3 == 0 ? 1 : -0.5) * 0.002;
    return {at, 1000 * (m + 2) * (at.micro_batch % 8 == 0 ? 1 : 1.1) * (1 + noise)};
  }

  Surface surface_;
  Study study_;
  guided::Lattice lattice_;
};

// Each trial has other knobs: they might be to blame too.
TEST_F(PhaseOfTiles, BlamesTheMicroBatchAndNotEachTrial) {
  const std::vector<Point> points{point(2, 0, 1),  point(2, 0, 2),  point(0, 1, 31), point(1, 0, 56), point(0, 0, 56),
                                  point(1, 1, 60), point(2, 1, 56), point(2, 0, 53), point(0, 1, 56), point(1, 0, 60),
                                  point(0, 0, 48), point(1, 0, 48), point(2, 1, 51)};
  std::vector<PhaseModel::Sample> samples;
  for (const Point& at : points) samples.push_back(sample(at, samples.size()));
  PhaseModel model(lattice_, guided::Phase::total, guided::speed_amplitudes(lattice_.knobs()));
  model.fit(samples, true);
  const Point asked = point(2, 0, 56);  // an arm measured elsewhere only
  const guided::Belief belief = model.predict({asked}, model.cross({asked})).front();
  EXPECT_NEAR(belief.mean, std::log(1000.0 * 58), 0.01);
  EXPECT_LT(std::sqrt(belief.variance), 0.01);
}

// Passes that take longer than in proportion to the micro batch contradict every constant of the physics. Whole steps
// of its fit went back and forth then, and foretold a pass of 16 samples 200 times as long as one of 4.
TEST(Phase, OfTheModelExtrapolatesSensiblyWhereThePhysicsIsContradicted) {
  Surface surface;
  surface.num_params = 1e9;
  const Study study = make_study(surface, small_space({3}));
  guided::Lattice lattice(study);
  const auto point = [&](int64_t m) { return Point{lattice.arm(guided::Configuration{3, {0, 0}}), m}; };
  PhaseModel model(lattice, guided::Phase::backward, guided::speed_amplitudes(lattice.knobs()));
  model.fit({{point(2), 30'000}, {point(4), 63'000}}, true);
  const guided::Belief belief = model.predict({point(16)}, model.cross({point(16)})).front();
  EXPECT_NEAR(belief.mean, std::log(4 * 63'000.0), 0.4);
}

}  // namespace
}  // namespace dsat::tests
