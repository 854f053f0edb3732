// Draws from what is believed of many points together: how fast each is and whether it fits.
//
// Purpose: what trials that run side by side add to each other. Beliefs about single points cannot tell: if one micro
//   batch fits, a slightly larger one most likely does too, and a knob that helps here helps there. In a draw every
//   point has one speed and fits or does not, all consistent with each other and with the trials so far; what a
//   trial adds to others is the mean over the draws (the multi-point expected improvement by simulation: Ginsbourger,
//   Le Riche and Carraro, "Kriging is well-suited to parallelize optimization", 2010).
// Threading: one thread. Cost: O(points^3) to make. Units: goodness, the logarithm of the metric (speed_model.h).
#ifndef DSAT_PLUGINS_ZERO_MODEL_CHOICE_JOINT_SAMPLES_H_
#define DSAT_PLUGINS_ZERO_MODEL_CHOICE_JOINT_SAMPLES_H_

#include <Eigen/Dense>
#include <map>
#include <vector>

#include "dsat/random.h"
#include "zero_model/choice/surrogate.h"

namespace dsat::guided {

class JointDraws {
 public:
  // Copies of a point are drawn once.
  JointDraws(const Beliefs& beliefs, const std::vector<Point>& points, Eigen::Index draws, Random random);

  const std::vector<Point>& points() const { return points_; }
  bool knows(const Point& point) const { return index_.count(point) != 0; }

  // In each draw the best of `points` that fits; draws in which none does have the lowest goodness of all.
  Eigen::ArrayXd best_of(const std::vector<Point>& points) const;
  // The mean over the draws of what the point adds to the best of others.
  double gain(const Point& point, const Eigen::ArrayXd& best) const;
  double mean(const Point& point) const;  // of the goodness, or the lowest
  double probability_of_fitting(const Point& point) const;

 private:
  void limit_reach(const Beliefs& beliefs, Random& random);
  Eigen::Index at(const Point& point) const { return index_.at(point); }

  std::vector<Point> points_;
  std::map<Point, Eigen::Index> index_;
  Eigen::ArrayXXd goodness_;  // draws x points; of one that does not fit the lowest of all
  Eigen::ArrayXXd fits_;      // 1 or 0
  double lowest_ = 0;
};

}  // namespace dsat::guided

#endif  // DSAT_PLUGINS_ZERO_MODEL_CHOICE_JOINT_SAMPLES_H_
