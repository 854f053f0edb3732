#include "zero_model/memory/memory_mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dsat::guided {

MemoryBelief::MemoryBelief(const Lattice& lattice, const MemoryPrior& prior) {
  for (const MemoryLaw& law : all_memory_laws(lattice.knobs())) {
    laws_.emplace_back(lattice, prior, law);
    weights_.push_back(law.prior);
  }
}

void MemoryBelief::fit(const std::vector<MemoryModel::Sample>& observed, bool tune) {
  double most = 0;
  for (size_t i = 0; i < laws_.size(); ++i) {
    laws_[i].fit(observed, tune);
    most = i == 0 ? laws_[i].log_evidence() : std::max(most, laws_[i].log_evidence());
  }
  for (size_t i = 0; i < laws_.size(); ++i) weights_[i] = std::exp(laws_[i].log_evidence() - most);
}

Eigen::MatrixXd MemoryBelief::draw_fits(const std::vector<Point>& points, Eigen::Index draws, Random& random) const {
  double weights = 0;
  for (size_t i = 0; i < laws_.size(); ++i) weights += weights_[i] * laws_[i].law().beside;
  Eigen::MatrixXd fits(static_cast<Eigen::Index>(points.size()), draws);
  double so_far = 0;
  Eigen::Index first = 0;
  for (size_t i = 0; i < laws_.size(); ++i) {
    so_far += weights_[i] * laws_[i].law().beside;
    const Eigen::Index last = std::llround(so_far / weights * static_cast<double>(draws));
    if (last > first) fits.middleCols(first, last - first) = laws_[i].draw_fits(points, last - first, random);
    first = last;
  }
  return fits;
}

double MemoryBelief::probability_of_fitting(const Point& point) const {
  constexpr double kNegligible = 1e-3;  // of the heaviest law's weight
  double sum = 0, weights = 0;
  for (size_t i = 0; i < laws_.size(); ++i) {
    if (weights_[i] < kNegligible) continue;
    sum += weights_[i] * laws_[i].probability_of_fitting(point);
    weights += weights_[i];
  }
  return sum / weights;
}

double MemoryBelief::formula_share() const {
  return weights_.front() / std::accumulate(weights_.begin(), weights_.end(), 0.0);
}

}  // namespace dsat::guided
