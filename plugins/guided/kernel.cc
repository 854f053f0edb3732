#include "kernel.h"

#include <cmath>

namespace dsat::guided {
namespace {

constexpr double kSharedByStages = 0.6;
constexpr double kKnobReach = 0.4;   // of a numeric knob's range
constexpr double kCurveReach = 0.8;  // of log(micro batch)
constexpr double kRoughReach = 0.05;
constexpr double kArmReach = 0.5;

double square(double x) { return x * x; }

// Matern with smoothness 3/2: once differentiable.
double smooth(double distance, double reach) {
  const double scaled = 1.7320508075688772 * std::abs(distance) / reach;
  return (1 + scaled) * std::exp(-scaled);
}

double ragged(double distance, double reach) { return std::exp(-std::abs(distance) / reach); }

}  // namespace

Site site_of(const Point& point) {
  Site site{point.arm, std::log(static_cast<double>(point.micro_batch)), 0};
  for (int64_t m = point.micro_batch; site.twos < 4 && m % 2 == 0; m /= 2) ++site.twos;
  return site;
}

void Kernel::covariances(const Site& a, const Site& b, Eigen::Ref<Eigen::VectorXd> out) const {
  const bool same_stage = a.arm->stage == b.arm->stage;
  const double shared = same_stage ? 1 : kSharedByStages;
  const double distance = a.log_micro_batch - b.log_micro_batch;
  out[0] = same_stage ? square(amplitudes_.stage) : 0;
  out[1] = square(amplitudes_.curve) * shared * smooth(distance, kCurveReach);
  out[2] = square(amplitudes_.rough) * shared * ragged(distance, kRoughReach);
  out[3] = a.twos == b.twos ? square(amplitudes_.divisibility) : 0;
  out[4] = a.arm == b.arm ? square(amplitudes_.arm) * ragged(distance, kArmReach) : 0;
  for (size_t i = 0; i < knobs_->size(); ++i) {
    const double at = a.arm->coordinates[i], other = b.arm->coordinates[i];
    double alike = 0;
    if (at == other) {
      alike = at == kAbsent ? 1 : shared;
    } else if (at != kAbsent && other != kAbsent && (*knobs_)[i].numeric) {
      alike = shared * smooth(at - other, kKnobReach);
    }
    out[kFirstKnob + static_cast<Eigen::Index>(i)] = square(amplitudes_.knobs[i]) * alike;
  }
}

Eigen::VectorXd Kernel::variances() const {
  Eigen::VectorXd all(parts());
  all.head<kFirstKnob>() << amplitudes_.stage, amplitudes_.curve, amplitudes_.rough, amplitudes_.divisibility,
      amplitudes_.arm;
  for (size_t i = 0; i < knobs_->size(); ++i) all[kFirstKnob + static_cast<Eigen::Index>(i)] = amplitudes_.knobs[i];
  return all.array().square();
}

}  // namespace dsat::guided
