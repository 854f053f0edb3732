// Each part is a covariance function of the distance in one thing: stage, axis value, log micro batch or its powers of
// two. Parts with an amplitude of 0 are not computed.
#include "cost/posterior/kernel.h"

#include <cmath>

namespace dsat::cost {
namespace {

constexpr double kSharedByStages = 0.6;
constexpr double kAxisReach = 0.4;   // of a numeric axis's range
constexpr double kCurveReach = 0.8;  // of log(micro batch)
constexpr double kRoughReach = 0.05;
constexpr double kArmReach = 0.5;
constexpr double kInteractionReach = 0.8;  // of log(micro batch), and of a numeric axis's range
constexpr double kOtherValue = 1;          // the distance of different values of other axes, and of stages

constexpr int kMostTwos = 4;

double square(double x) { return x * x; }

// Matern with smoothness 3/2: once differentiable.
double smooth(double distance, double reach) {
  const double scaled = 1.7320508075688772 * std::abs(distance) / reach;
  return (1 + scaled) * std::exp(-scaled);
}

// The correlation by divisibility: the share of 2, 4, 8 and 16 that divides both micro batches or neither, less the
// share that divides one of them.
double alike(int twos, int other) { return 1 - 2.0 * std::abs(twos - other) / kMostTwos; }

double ragged(double distance, double reach) { return std::exp(-std::abs(distance) / reach); }

}  // namespace

Site site_of(const MemoryPoint& point) {
  Site site{point.arm, std::log(static_cast<double>(point.micro_batch)), 0};
  for (int64_t m = point.micro_batch; site.twos < kMostTwos && m % 2 == 0; m /= 2) ++site.twos;
  return site;
}

double Kernel::of_axis(size_t axis, const MemoryArm& a, const MemoryArm& b, double shared) const {
  const double at = a.coordinates[axis], other = b.coordinates[axis];
  if (at == other) return square(amplitudes_.axes[axis]) * (at == kAbsent ? 1 : shared);
  if (at == kAbsent || other == kAbsent || !(*axes_)[axis].numeric) return 0;
  return square(amplitudes_.axes[axis]) * shared * smooth(at - other, kAxisReach);
}

// Smooth in all at once: near only where everything is.
double Kernel::interaction(const Site& a, const Site& b) const {
  double distance = square((a.log_micro_batch - b.log_micro_batch) / kInteractionReach);
  if (a.arm->stage != b.arm->stage) distance += square(kOtherValue);
  for (size_t i = 0; i < axes_->size(); ++i) {
    const double at = a.arm->coordinates[i], other = b.arm->coordinates[i];
    if (at == other) continue;
    const bool ordered = (*axes_)[i].numeric && at != kAbsent && other != kAbsent;
    distance += square(ordered ? (at - other) / kInteractionReach : kOtherValue);
  }
  return std::exp(-0.5 * distance);
}

double Kernel::of_axes(const MemoryArm& a, const MemoryArm& b) const {
  const double shared = a.stage == b.stage ? 1 : kSharedByStages;
  double sum = 0;
  for (size_t i = 0; i < axes_->size(); ++i) sum += of_axis(i, a, b, shared);
  return sum;
}

double Kernel::of_rest(const Site& a, const Site& b) const {
  double parts[kFirstAxis];
  rest_covariances(a, b, parts);
  return parts[0] + parts[1] + parts[2] + parts[3] + parts[4] + parts[5];
}

void Kernel::axis_covariances(const MemoryArm& a, const MemoryArm& b, double* out) const {
  const double shared = a.stage == b.stage ? 1 : kSharedByStages;
  for (size_t i = 0; i < axes_->size(); ++i) out[i] = of_axis(i, a, b, shared);
}

void Kernel::rest_covariances(const Site& a, const Site& b, double* out) const {
  const bool same_stage = a.arm->stage == b.arm->stage;
  const double shared = same_stage ? 1 : kSharedByStages;
  const double distance = a.log_micro_batch - b.log_micro_batch;
  const bool near = std::abs(distance) < 20 * kRoughReach;  // beyond that the rough part is nothing
  out[0] = same_stage ? square(amplitudes_.stage) : 0;
  out[1] = amplitudes_.curve > 0 ? square(amplitudes_.curve) * shared * smooth(distance, kCurveReach) : 0;
  out[2] = amplitudes_.rough > 0 && near ? square(amplitudes_.rough) * shared * ragged(distance, kRoughReach) : 0;
  out[3] = square(amplitudes_.divisibility) * alike(a.twos, b.twos);
  out[4] = a.arm == b.arm && amplitudes_.arm > 0 ? square(amplitudes_.arm) * ragged(distance, kArmReach) : 0;
  out[5] = amplitudes_.interaction > 0 ? square(amplitudes_.interaction) * interaction(a, b) : 0;
}

void Kernel::covariances(const Site& a, const Site& b, double* out) const {
  rest_covariances(a, b, out);
  axis_covariances(*a.arm, *b.arm, out + kFirstAxis);
}

Eigen::VectorXd Kernel::variances() const {
  Eigen::VectorXd all(parts());
  all.head<kFirstAxis>() << amplitudes_.stage, amplitudes_.curve, amplitudes_.rough, amplitudes_.divisibility,
      amplitudes_.arm, amplitudes_.interaction;
  for (size_t i = 0; i < axes_->size(); ++i) all[kFirstAxis + static_cast<Eigen::Index>(i)] = amplitudes_.axes[i];
  return all.array().square();
}

}  // namespace dsat::cost
