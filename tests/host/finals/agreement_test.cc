// What runs of one configuration may differ by, and what shows that another one learns something else.
#include "finals/agreement.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Values = std::vector<std::optional<double>>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const Json kFp32 = Json::object();
const Json kBf16 = {{"bf16", {{"enabled", true}}}};

Curve times(Curve curve, double factor, size_t from = 0) {
  for (Values* values : {&curve.losses, &curve.grad_norms}) {
    for (size_t step = from; step < values->size(); ++step) *(*values)[step] *= factor;
  }
  return curve;
}

const Curve kOwnCurve{{4.0, 3.5, 3.1, 2.8, 2.6, 2.5}, {9.0, 8.0, 7.5, 7.0, 6.8, 6.5}};

TEST(BandTest, RunsThatAreTheSameLeaveTheFloorOfThePrecision) {
  const Band fp32({kOwnCurve, kOwnCurve}, band_floor(kFp32)), bf16({kOwnCurve, kOwnCurve}, band_floor(kBf16));
  EXPECT_FALSE(fp32.leaves(kOwnCurve));
  EXPECT_FALSE(fp32.leaves(times(kOwnCurve, 1.0009)));
  ASSERT_TRUE(fp32.leaves(times(kOwnCurve, 1.0011)));
  EXPECT_EQ(fp32.leaves(times(kOwnCurve, 1.01))->step, 0u);
  EXPECT_FALSE(bf16.leaves(times(kOwnCurve, 1.01)));
  EXPECT_TRUE(bf16.leaves(times(kOwnCurve, 1.03)));
}

TEST(BandTest, LaterStepsMayDifferByMore) {
  const Band band({kOwnCurve, kOwnCurve}, band_floor(kFp32));
  EXPECT_FALSE(band.leaves(times(kOwnCurve, 1.002, 4)));
  const auto mismatch = band.leaves(times(kOwnCurve, 1.02, 3));
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->step, 3u);
  EXPECT_TRUE(band.leaves(times(kOwnCurve, 1.003, 4)));
  EXPECT_EQ(describe(*mismatch), "the loss is 2.86 in place of 2.8 at step 4");
}

TEST(BandTest, TwoRunsShowWhatARunMayDifferBy) {
  const Band band({kOwnCurve, times(kOwnCurve, 1.02)}, band_floor(kFp32));
  EXPECT_THAT(band.why_random(), IsEmpty());
  EXPECT_FALSE(band.leaves(times(kOwnCurve, 1.05)));
  EXPECT_TRUE(band.leaves(times(kOwnCurve, 1.07)));
}

TEST(BandTest, ALossThatIsRandomIsComparedWithNothing) {
  Curve other = kOwnCurve;
  for (auto& loss : other.losses) *loss *= 1.5;
  const Band band({kOwnCurve, other}, band_floor(kFp32));
  EXPECT_THAT(band.why_random(), AllOf(HasSubstr("50 %"), HasSubstr("loss"), HasSubstr("random")));
  EXPECT_FALSE(band.leaves(other));
  EXPECT_EQ(band.compared(other), kOwnCurve.grad_norms.size()) << "the norms are not random";
  other.grad_norms = times(kOwnCurve, 3).grad_norms;
  EXPECT_TRUE(band.leaves(other));
}

TEST(BandTest, WhatIsUnknownOrNotFiniteInTheOwnIsNotHeldAgainstAnybody) {
  Curve own = kOwnCurve;
  own.losses[2] = kNan;
  own.grad_norms[0] = std::nullopt;
  const Band band({own, own}, band_floor(kFp32));
  EXPECT_FALSE(band.leaves(own));
  EXPECT_FALSE(band.leaves(kOwnCurve));
  EXPECT_FALSE(band.leaves(Curve{{}, {}}));
  EXPECT_EQ(band.compared(Curve()), 0u);
  Curve sick = kOwnCurve;
  sick.losses[1] = kNan;
  ASSERT_TRUE(band.leaves(sick));
  EXPECT_THAT(describe(*band.leaves(sick)), StartsWith("the loss is nan in place of 3.5 at step 2"));
}

TEST(BandTest, ALossNearZeroIsNoLargeDifference) {
  const Curve own{{4.0, 1.0, 0.001, 0.0001}, {}};
  Curve other = own;
  other.losses[3] = 0.0003;
  EXPECT_FALSE(Band({own, own}, band_floor(kFp32)).leaves(other));
}

TEST(AgreementTest, FloorsByPrecision) {
  EXPECT_DOUBLE_EQ(band_floor(kFp32), 0.001);
  EXPECT_DOUBLE_EQ(band_floor({{"fp16", {{"enabled", true}}}}), 0.01);
  EXPECT_DOUBLE_EQ(band_floor({{"fp16", {{"enabled", false}}}}), 0.001);
  EXPECT_DOUBLE_EQ(band_floor({{"bf16", {{"enabled", "auto"}}}}), 0.02) << "somebody may switch it on";
  EXPECT_DOUBLE_EQ(band_floor({{"communication_data_type", "fp16"}}), 0.01);
}

TEST(AgreementTest, TheFirstValueThatIsNotFinite) {
  EXPECT_FALSE(first_not_finite(kOwnCurve));
  Curve curve = kOwnCurve;
  curve.losses[5] = kNan;
  curve.grad_norms[4] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(describe_not_finite(*first_not_finite(curve)), "the gradient norm is inf at step 5");
  curve.losses[4] = kNan;
  EXPECT_EQ(describe_not_finite(*first_not_finite(curve)), "the loss is nan at step 5");
}

std::string scaled(double factor, int64_t own_batch, int64_t batch) {
  const Curve other = times(kOwnCurve, factor);
  return what_does_not_scale({kOwnCurve, own_batch}, {other, batch});
}

TEST(ScaleTest, ANormFollowsTheBatchOrDoesNotDependOnIt) {
  EXPECT_THAT(scaled(1, 8, 8), IsEmpty());
  EXPECT_THAT(scaled(1, 8, 512), IsEmpty()) << "signal";
  EXPECT_THAT(scaled(0.125, 8, 512), IsEmpty()) << "noise";
  EXPECT_THAT(scaled(8, 512, 8), IsEmpty());
}

TEST(ScaleTest, WorldSizesAndTheirInversesShow) {
  for (const double factor : {2.0, 0.5, 3.0, 1.0 / 3, 8.0, 0.125}) EXPECT_THAT(scaled(factor, 8, 8), Not(IsEmpty()));
  EXPECT_THAT(scaled(4, 8, 16),
              HasSubstr("the gradient norm is 36 in place of 9 at step 1, and the batch (16 in place"));
  EXPECT_THAT(scaled(0.1, 8, 16), Not(IsEmpty()));
}

TEST(ScaleTest, OneOddStepIsAnOddBatch) {
  Curve other = kOwnCurve;
  other.grad_norms[0] = 900;
  EXPECT_THAT(what_does_not_scale({kOwnCurve, 8}, {other, 8}), IsEmpty());
  EXPECT_THAT(what_does_not_scale({kOwnCurve, 8}, {Curve{{}, {99}}, 8}), IsEmpty()) << "of one step";
  EXPECT_THAT(what_does_not_scale({kOwnCurve, 8}, {Curve(), 8}), IsEmpty());
}

TEST(StuckTest, ALossThatStaysWhereTheOwnMoves) {
  const Curve stuck{{4.0, 4.0, 4.0, 4.0, 4.0}, {}};
  EXPECT_THAT(what_is_stuck(kOwnCurve, stuck, 0.001), AllOf(HasSubstr("stays at 4"), HasSubstr("2.5 and 4")));
  EXPECT_THAT(what_is_stuck(kOwnCurve, times(kOwnCurve, 3), 0.001), IsEmpty());
  EXPECT_THAT(what_is_stuck(stuck, stuck, 0.001), IsEmpty());
  EXPECT_THAT(what_is_stuck(kOwnCurve, Curve{{4.0, 4.0}, {}}, 0.001), IsEmpty()) << "too few steps";
  const Curve slow{{4.0, 3.98, 3.97, 3.96}, {}};
  EXPECT_THAT(what_is_stuck(slow, stuck, 0.02), IsEmpty()) << "rounding hides such a movement";
}

}  // namespace
}  // namespace dsat::host
