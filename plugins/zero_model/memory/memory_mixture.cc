// The hypotheses' models side by side: all fit the same trials, and their evidence is their weight. Joint draws are
// shared out between the models in proportion to it.
#include "zero_model/memory/memory_mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dsat::zero_model {

MemoryMixture::MemoryMixture(const ModelSpace& space, const MemoryPrior& prior) {
  for (const MemoryHypothesis& hypothesis : memory_hypotheses(space.axes())) {
    models_.emplace_back(space, prior, hypothesis);
    weights_.push_back(hypothesis.prior);
  }
}

void MemoryMixture::fit(const std::vector<MemoryObservation>& observations, bool tune) {
  double most = 0;
  for (size_t i = 0; i < models_.size(); ++i) {
    models_[i].fit(observations, tune);
    most = i == 0 ? models_[i].log_evidence() : std::max(most, models_[i].log_evidence());
  }
  for (size_t i = 0; i < models_.size(); ++i) weights_[i] = std::exp(models_[i].log_evidence() - most);
}

Eigen::MatrixXd MemoryMixture::draw_fits(const std::vector<Point>& points, Eigen::Index draws, Random& random) const {
  double weights = 0;
  for (size_t i = 0; i < models_.size(); ++i) weights += weights_[i] * models_[i].hypothesis().concurrent_factor;
  Eigen::MatrixXd fits(static_cast<Eigen::Index>(points.size()), draws);
  double so_far = 0;
  Eigen::Index first = 0;
  for (size_t i = 0; i < models_.size(); ++i) {
    so_far += weights_[i] * models_[i].hypothesis().concurrent_factor;
    const Eigen::Index last = std::llround(so_far / weights * static_cast<double>(draws));
    if (last > first) fits.middleCols(first, last - first) = models_[i].draw_fits(points, last - first, random);
    first = last;
  }
  return fits;
}

double MemoryMixture::probability_of_fitting(const Point& point) const {
  constexpr double kNegligible = 1e-3;  // of the heaviest hypothesis's weight
  double sum = 0, weights = 0;
  for (size_t i = 0; i < models_.size(); ++i) {
    if (weights_[i] < kNegligible) continue;
    sum += weights_[i] * models_[i].probability_of_fitting(point);
    weights += weights_[i];
  }
  return sum / weights;
}

double MemoryMixture::formula_probability() const {
  return weights_.front() / std::accumulate(weights_.begin(), weights_.end(), 0.0);
}

}  // namespace dsat::zero_model
