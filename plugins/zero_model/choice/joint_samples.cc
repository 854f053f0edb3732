// Samples the speed and memory of all points from the joint posteriors. Known points keep their results, and each
// sample limits how far its extrapolation holds.
#include "zero_model/choice/joint_samples.h"

#include <algorithm>
#include <cmath>

namespace dsat::zero_model {

JointSamples::JointSamples(const Surrogate& surrogate, const std::vector<Point>& points, Eigen::Index count,
                           Random random) {
  for (const Point& point : points) {
    if (index_.emplace(point, static_cast<Eigen::Index>(points_.size())).second) points_.push_back(point);
  }
  objective_ = surrogate.speed().draw(points_, count, random).transpose();
  fits_ = surrogate.memory().draw_fits({points_.begin(), points_.end()}, count, random).transpose();
  for (size_t i = 0; i < points_.size(); ++i) {
    const Surrogate::PointRecord* known = surrogate.find(points_[i]);
    if (known == nullptr) continue;
    if (known->count > 0 || known->out_of_memory) fits_.col(static_cast<Eigen::Index>(i)) = known->count > 0 ? 1 : 0;
  }
  limit_extrapolation(surrogate, random);
  lowest_ = objective_.minCoeff();
  objective_ = (fits_ > 0.5).select(objective_, lowest_);
}

// No memory model holds for ever: with each doubling beyond the largest completed micro batch it may turn out wrong,
// for all points at once. A batch that relies on one extrapolation would fail as a whole.
void JointSamples::limit_extrapolation(const Surrogate& surrogate, Random& random) {
  constexpr double kPerDoubling = 0.06;
  int64_t largest = 1;
  for (const auto& [point, known] : surrogate.points()) {
    if (known.count > 0) largest = std::max(largest, point.micro_batch);
  }
  Eigen::ArrayXd reach(fits_.rows());
  for (double& doublings : reach) doublings = -std::log(1 - random.uniform()) / kPerDoubling;
  for (size_t i = 0; i < points_.size(); ++i) {
    const double beyond = std::log2(static_cast<double>(points_[i].micro_batch) / static_cast<double>(largest));
    fits_.col(static_cast<Eigen::Index>(i)) *= (reach >= beyond).cast<double>();
  }
}

Eigen::ArrayXd JointSamples::best_of(const std::vector<Point>& points) const {
  Eigen::ArrayXd best = Eigen::ArrayXd::Constant(objective_.rows(), lowest_);
  for (const Point& point : points) best = best.max(objective_.col(at(point)));
  return best;
}

double JointSamples::gain(const Point& point, const Eigen::ArrayXd& best) const {
  return (objective_.col(at(point)) - best).max(0).mean();
}

double JointSamples::mean(const Point& point) const { return objective_.col(at(point)).mean(); }
double JointSamples::probability_of_fitting(const Point& point) const { return fits_.col(at(point)).mean(); }

}  // namespace dsat::zero_model
