#include "zero_model/choice/joint_samples.h"

#include <algorithm>
#include <cmath>

namespace dsat::guided {

JointDraws::JointDraws(const Beliefs& beliefs, const std::vector<Point>& points, Eigen::Index draws, Random random) {
  for (const Point& point : points) {
    if (index_.emplace(point, static_cast<Eigen::Index>(points_.size())).second) points_.push_back(point);
  }
  goodness_ = beliefs.speed().draw(points_, draws, random).transpose();
  fits_ = beliefs.memory().draw_fits(points_, draws, random).transpose();
  for (size_t i = 0; i < points_.size(); ++i) {
    const Beliefs::Measured* known = beliefs.find(points_[i]);
    if (known == nullptr) continue;
    if (known->count > 0)
      fits_.col(static_cast<Eigen::Index>(i)) = 1;
    else if (known->out_of_memory)
      fits_.col(static_cast<Eigen::Index>(i)) = 0;
  }
  limit_reach(beliefs, random);
  lowest_ = goodness_.minCoeff();
  goodness_ = (fits_ > 0.5).select(goodness_, lowest_);
}

// No law holds for ever: with each doubling beyond the largest micro batch that ran it may turn out wrong, for all
// points alike. A round that stakes everything on one extrapolation loses everything with it.
void JointDraws::limit_reach(const Beliefs& beliefs, Random& random) {
  constexpr double kPerDoubling = 0.06;
  int64_t largest = 1;
  for (const auto& [point, known] : beliefs.points()) {
    if (known.count > 0) largest = std::max(largest, point.micro_batch);
  }
  Eigen::ArrayXd reach(fits_.rows());
  for (double& doublings : reach) doublings = -std::log(1 - random.uniform()) / kPerDoubling;
  for (size_t i = 0; i < points_.size(); ++i) {
    const double beyond = std::log2(static_cast<double>(points_[i].micro_batch) / static_cast<double>(largest));
    fits_.col(static_cast<Eigen::Index>(i)) *= (reach >= beyond).cast<double>();
  }
}

Eigen::ArrayXd JointDraws::best_of(const std::vector<Point>& points) const {
  Eigen::ArrayXd best = Eigen::ArrayXd::Constant(goodness_.rows(), lowest_);
  for (const Point& point : points) best = best.max(goodness_.col(at(point)));
  return best;
}

double JointDraws::gain(const Point& point, const Eigen::ArrayXd& best) const {
  return (goodness_.col(at(point)) - best).max(0).mean();
}

double JointDraws::mean(const Point& point) const { return goodness_.col(at(point)).mean(); }
double JointDraws::probability_of_fitting(const Point& point) const { return fits_.col(at(point)).mean(); }

}  // namespace dsat::guided
