// Joint samples of many points: how fast each is, and whether it fits.
//
// Purpose: the value that concurrent trials add to each other. Predictions of single points cannot show it: if one
//   micro batch fits, a slightly larger one most likely fits too. In a sample every point has one speed and fits or
//   does not, consistent with each other and with the trials so far. The gain of a trial beside others is the mean over
//   samples (the multi-point expected improvement by simulation: Ginsbourger, Le Riche and Carraro, "Kriging is
//   well-suited to parallelize optimization", 2010).
// Units: the objective of speed_model.h. Shapes: samples x points. Cost: O(points^3) to make.
// Threading: one thread. Ownership: copies what it needs. Errors: points must be among those of the constructor.
#ifndef DSAT_PLUGINS_ZERO_MODEL_CHOICE_JOINT_SAMPLES_H_
#define DSAT_PLUGINS_ZERO_MODEL_CHOICE_JOINT_SAMPLES_H_

#include <Eigen/Dense>
#include <map>
#include <vector>

#include "dsat/random.h"
#include "zero_model/choice/surrogate.h"

namespace dsat::zero_model {

class JointSamples {
 public:
  // Needs at least one point. Equal points are sampled once.
  JointSamples(const Surrogate& surrogate, const std::vector<Point>& points, Eigen::Index count, Random random);

  const std::vector<Point>& points() const { return points_; }
  bool contains(const Point& point) const { return index_.count(point) != 0; }

  // The best objective of those `points` that fit, in each sample; the lowest objective of all if none fits.
  Eigen::ArrayXd best_of(const std::vector<Point>& points) const;
  // The mean gain of the point over the best of others.
  double gain(const Point& point, const Eigen::ArrayXd& best) const;
  double mean(const Point& point) const;  // of the objective, which is the lowest of all in samples without a fit
  double probability_of_fitting(const Point& point) const;

 private:
  void limit_extrapolation(const Surrogate& surrogate, Random& random);
  Eigen::Index at(const Point& point) const { return index_.at(point); }

  std::vector<Point> points_;
  std::map<Point, Eigen::Index> index_;
  Eigen::ArrayXXd objective_;  // the lowest of all where a point does not fit
  Eigen::ArrayXXd fits_;       // 1 or 0
  double lowest_ = 0;
};

}  // namespace dsat::zero_model

#endif  // DSAT_PLUGINS_ZERO_MODEL_CHOICE_JOINT_SAMPLES_H_
