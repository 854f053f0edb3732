// The covariance of the models' residuals: how alike two points are in what no formula knows.
//
// The kernel is a sum of independent parts, each with a length scale of its own: an offset of a stage, of an axis's
//   value (numeric axes vary smoothly, others freely), a curve along the micro batch, a rough part of it (jumps), its
//   divisibility by two, an offset of a single arm, and an interaction of stage, axes and micro batch. What one stage
//   teaches about an axis holds in part for the others. An additive covariance is what makes axes separable (Duvenaud
//   et al., "Additive Gaussian Processes", 2011).
// Units: relative standard deviations and their squares. Threading: pure functions. Errors: none.
// Ownership: refers to the axes, which must live longer.
#ifndef DSAT_COST_POSTERIOR_KERNEL_H_
#define DSAT_COST_POSTERIOR_KERNEL_H_

#include <Eigen/Dense>
#include <utility>
#include <vector>

#include "cost/posterior/places.h"

namespace dsat::cost {

// Standard deviations of the parts, relative (of a logarithm, or as a share).
struct Amplitudes {
  double stage = 0;
  std::vector<double> axes;
  double curve = 0, rough = 0, divisibility = 0, arm = 0, interaction = 0;
};

// A point prepared for the kernel.
struct Site {
  const MemoryArm* arm = nullptr;
  double log_micro_batch = 0;
  int twos = 0;  // how often the micro batch can be halved, at most 4
};
Site site_of(const MemoryPoint& point);

class Kernel {
 public:
  Kernel(const std::vector<ModelAxis>& axes, Amplitudes amplitudes)
      : axes_(&axes), amplitudes_(std::move(amplitudes)) {}

  // The parts, in this order: stage, curve, rough, divisibility, arm, interaction, then each axis.
  Eigen::Index parts() const { return kFirstAxis + static_cast<Eigen::Index>(axes_->size()); }
  // The covariance of each part, to be weighed by the squares of the parts' scales.
  void covariances(const Site& a, const Site& b, double* out) const;
  void axis_covariances(const MemoryArm& a, const MemoryArm& b, double* out) const;  // the axes' alone
  void rest_covariances(const Site& a, const Site& b, double* out) const;            // the first six
  // Their sum, in two: what the arms' axes give, and the rest.
  double of_axes(const MemoryArm& a, const MemoryArm& b) const;
  double of_rest(const Site& a, const Site& b) const;
  // The parts' variances, which all points share.
  Eigen::VectorXd variances() const;

  static constexpr Eigen::Index kFirstAxis = 6;

 private:
  double interaction(const Site& a, const Site& b) const;
  double of_axis(size_t axis, const MemoryArm& a, const MemoryArm& b, double shared) const;

  const std::vector<ModelAxis>* axes_;
  Amplitudes amplitudes_;
};

}  // namespace dsat::cost

#endif  // DSAT_COST_POSTERIOR_KERNEL_H_
