#include "zero_model/gaussian/kernel.h"

#include <cmath>

namespace dsat::guided {
namespace {

constexpr double kSharedByStages = 0.6;
constexpr double kKnobReach = 0.4;   // of a numeric knob's range
constexpr double kCurveReach = 0.8;  // of log(micro batch)
constexpr double kRoughReach = 0.05;
constexpr double kArmReach = 0.5;
constexpr double kTogetherReach = 0.8;  // of log(micro batch), and of a numeric knob's range
constexpr double kOtherValue = 1;       // the distance of different values of other knobs, and of stages

constexpr int kMostTwos = 4;

double square(double x) { return x * x; }

// Matern with smoothness 3/2: once differentiable.
double smooth(double distance, double reach) {
  const double scaled = 1.7320508075688772 * std::abs(distance) / reach;
  return (1 + scaled) * std::exp(-scaled);
}

// Of 2, 4, 8 and 16: the share that divides both or neither, less the share that divides one of them.
double alike(int twos, int other) { return 1 - 2.0 * std::abs(twos - other) / kMostTwos; }

double ragged(double distance, double reach) { return std::exp(-std::abs(distance) / reach); }

}  // namespace

Site site_of(const Point& point) {
  Site site{point.arm, std::log(static_cast<double>(point.micro_batch)), 0};
  for (int64_t m = point.micro_batch; site.twos < kMostTwos && m % 2 == 0; m /= 2) ++site.twos;
  return site;
}

double Kernel::of_knob(size_t knob, const Arm& a, const Arm& b, double shared) const {
  const double at = a.coordinates[knob], other = b.coordinates[knob];
  if (at == other) return square(amplitudes_.knobs[knob]) * (at == kAbsent ? 1 : shared);
  if (at == kAbsent || other == kAbsent || !(*knobs_)[knob].numeric) return 0;
  return square(amplitudes_.knobs[knob]) * shared * smooth(at - other, kKnobReach);
}

// Smooth in all at once: near only where everything is.
double Kernel::together(const Site& a, const Site& b) const {
  double distance = square((a.log_micro_batch - b.log_micro_batch) / kTogetherReach);
  if (a.arm->stage != b.arm->stage) distance += square(kOtherValue);
  for (size_t i = 0; i < knobs_->size(); ++i) {
    const double at = a.arm->coordinates[i], other = b.arm->coordinates[i];
    if (at == other) continue;
    const bool ordered = (*knobs_)[i].numeric && at != kAbsent && other != kAbsent;
    distance += square(ordered ? (at - other) / kTogetherReach : kOtherValue);
  }
  return std::exp(-0.5 * distance);
}

double Kernel::of_knobs(const Arm& a, const Arm& b) const {
  const double shared = a.stage == b.stage ? 1 : kSharedByStages;
  double sum = 0;
  for (size_t i = 0; i < knobs_->size(); ++i) sum += of_knob(i, a, b, shared);
  return sum;
}

double Kernel::of_rest(const Site& a, const Site& b) const {
  double parts[kFirstKnob];
  rest_covariances(a, b, parts);
  return parts[0] + parts[1] + parts[2] + parts[3] + parts[4] + parts[5];
}

void Kernel::knob_covariances(const Arm& a, const Arm& b, double* out) const {
  const double shared = a.stage == b.stage ? 1 : kSharedByStages;
  for (size_t i = 0; i < knobs_->size(); ++i) out[i] = of_knob(i, a, b, shared);
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
  out[5] = amplitudes_.together > 0 ? square(amplitudes_.together) * together(a, b) : 0;
}

void Kernel::covariances(const Site& a, const Site& b, double* out) const {
  rest_covariances(a, b, out);
  knob_covariances(*a.arm, *b.arm, out + kFirstKnob);
}

Eigen::VectorXd Kernel::variances() const {
  Eigen::VectorXd all(parts());
  all.head<kFirstKnob>() << amplitudes_.stage, amplitudes_.curve, amplitudes_.rough, amplitudes_.divisibility,
      amplitudes_.arm, amplitudes_.together;
  for (size_t i = 0; i < knobs_->size(); ++i) all[kFirstKnob + static_cast<Eigen::Index>(i)] = amplitudes_.knobs[i];
  return all.array().square();
}

}  // namespace dsat::guided
