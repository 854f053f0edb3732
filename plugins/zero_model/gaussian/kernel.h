// How alike two points are, in what no formula knows: the covariance of the models' residuals.
//
// A sum of independent parts, each with its own reach: an offset of a stage, of a knob's value (numeric knobs vary
// smoothly, others freely), a curve along the micro batch, a rough part of it (jumps), its divisibility by two, an
// offset of a single arm, and what stage, knobs and micro batch do together and not each by itself. What one stage
// teaches about a knob holds for the others in part. An additive covariance is what makes knobs separable (Duvenaud et
// al., "Additive Gaussian Processes", 2011). Threading: pure functions.
#ifndef DSAT_PLUGINS_ZERO_MODEL_GAUSSIAN_KERNEL_H_
#define DSAT_PLUGINS_ZERO_MODEL_GAUSSIAN_KERNEL_H_

#include <Eigen/Dense>
#include <utility>
#include <vector>

#include "zero_model/space/space.h"

namespace dsat::guided {

// Standard deviations of the parts, relative (of a logarithm, or as a share).
struct Amplitudes {
  double stage = 0;
  std::vector<double> knobs;
  double curve = 0, rough = 0, divisibility = 0, arm = 0, together = 0;
};

// A point prepared for the kernel.
struct Site {
  const Arm* arm = nullptr;
  double log_micro_batch = 0;
  int twos = 0;  // how often the micro batch can be halved, at most 4
};
Site site_of(const Point& point);

class Kernel {
 public:
  Kernel(const std::vector<Knob>& knobs, Amplitudes amplitudes) : knobs_(&knobs), amplitudes_(std::move(amplitudes)) {}

  // The parts, in this order: stage, curve, rough, divisibility, arm, together, then each knob.
  Eigen::Index parts() const { return kFirstKnob + static_cast<Eigen::Index>(knobs_->size()); }
  // The covariance of each part, to be weighed by the squares of the parts' scales.
  void covariances(const Site& a, const Site& b, double* out) const;
  void knob_covariances(const Arm& a, const Arm& b, double* out) const;    // the knobs' only
  void rest_covariances(const Site& a, const Site& b, double* out) const;  // the first six
  // Their sum, in two: what the arms' knobs give, and the rest.
  double of_knobs(const Arm& a, const Arm& b) const;
  double of_rest(const Site& a, const Site& b) const;
  // Of any one point with itself.
  Eigen::VectorXd variances() const;

  static constexpr Eigen::Index kFirstKnob = 6;

 private:
  double together(const Site& a, const Site& b) const;
  double of_knob(size_t knob, const Arm& a, const Arm& b, double shared) const;

  const std::vector<Knob>* knobs_;
  Amplitudes amplitudes_;
};

}  // namespace dsat::guided

#endif  // DSAT_PLUGINS_ZERO_MODEL_GAUSSIAN_KERNEL_H_
