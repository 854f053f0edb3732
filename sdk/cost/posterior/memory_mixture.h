// Predicts whether a point fits the device, by all hypotheses about memory together.
//
// Source: Bayesian model averaging (Hoeting, Madigan, Raftery and Volinsky, "Bayesian Model Averaging: A Tutorial",
//   1999). The probability of fitting is the mean of the hypotheses' own, weighted by prior and evidence. Where the
//   formula explains the trials the others count for next to nothing; a surprise or two shifts the weight. What trials
//   imply because memory is monotonic (memory_bounds.h) outweighs every hypothesis, but for a small chance: a device
//   that others use too, or an allocator that has fragmented, can contradict any bound.
// Shapes: points x draws. Threading: one thread. Errors: none. Ownership: as in memory_model.h.
#ifndef DSAT_COST_POSTERIOR_MEMORY_MIXTURE_H_
#define DSAT_COST_POSTERIOR_MEMORY_MIXTURE_H_

#include <vector>

#include "cost/posterior/memory_bounds.h"
#include "cost/posterior/memory_model.h"

namespace dsat::cost {

class MemoryMixture {
 public:
  MemoryMixture(const std::vector<ModelAxis>& axes, const MemoryPrior& prior);

  void fit(const std::vector<MemoryObservation>& observations, bool tune);  // as MemoryModel::fit
  size_t sites() const { return models_.front().sites(); }                  // of the last fit
  bool device_known() const { return models_.front().device_known(); }
  double probability_of_fitting(const MemoryPoint& point) const;
  // The peak of a trial, its part that does not grow with the micro batch, and the bytes a sample, by the hypotheses of
  // the formula; their differences count as variance.
  Believed peak(const MemoryPoint& point) const;
  Believed fixed() const;
  Believed activation() const;
  // Draws for trials that run concurrently, points x draws: 1 where a point fits, else 0. In a draw one hypothesis
  // holds for all points. MemoryHypothesis::concurrent_factor changes the hypotheses' weights here.
  Eigen::MatrixXd draw_fits(const std::vector<MemoryPoint>& points, Eigen::Index draws, Random& random) const;
  // The posterior probability of the formula in docs/cost-model.md, in [0, 1].
  double formula_probability() const;

 private:
  void find_bounds(const std::vector<MemoryObservation>& observations);
  // The mean over the hypotheses that count, by weight.
  template <class Value>
  double mean(const Value& value) const;
  template <class Value>
  Believed by_formula(const Value& value) const;
  double surprise(const MemoryPoint& point) const;
  const MemoryBounds::Range& bounds_of(const MemoryArm& arm) const;

  std::vector<MemoryModel> models_;  // one a hypothesis, the formula's first
  std::vector<double> weights_;
  MemoryBounds bounds_;
  double device_bytes_;                            // infinity: not known
  bool buffers_are_whole_ = true;                  // no trial completed whose buffers alone exceed the device
  bool contradicted_ = false;                      // a trial ran out of memory although another one shows that it fits
  mutable const MemoryArm* cached_arm_ = nullptr;  // the arm that bounds_of() was last asked about
  mutable MemoryBounds::Range cached_range_;
};

}  // namespace dsat::cost

#endif  // DSAT_COST_POSTERIOR_MEMORY_MIXTURE_H_
