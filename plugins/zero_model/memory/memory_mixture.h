// What fits, by all laws of memory together: each as credible as the evidence makes it.
//
// Bayesian model averaging (Hoeting, Madigan, Raftery and Volinsky, "Bayesian Model Averaging: A Tutorial", 1999): the
// probability of fitting is the laws' own, weighed by prior and evidence. Where the formula explains the trials the
// others count for next to nothing; a surprise or two shifts the weight.
// Threading: one thread.
#ifndef DSAT_PLUGINS_ZERO_MODEL_MEMORY_MEMORY_MIXTURE_H_
#define DSAT_PLUGINS_ZERO_MODEL_MEMORY_MEMORY_MIXTURE_H_

#include <vector>

#include "zero_model/memory/memory_model.h"

namespace dsat::guided {

class MemoryBelief {
 public:
  MemoryBelief(const Lattice& lattice, const MemoryPrior& prior);

  void fit(const std::vector<MemoryModel::Sample>& observed, bool tune);  // see MemoryModel
  size_t sites() const { return laws_.front().sites(); }                  // of the last fit
  bool device_known() const { return laws_.front().device_known(); }
  double probability_of_fitting(const Point& point) const;
  // 1 where a point fits, else 0: points x draws. In a draw one law holds for all points. For trials that run side by
  // side: each law is as credible as MemoryLaw::beside makes it.
  Eigen::MatrixXd draw_fits(const std::vector<Point>& points, Eigen::Index draws, Random& random) const;
  // Credibility of the formula of cost-model.md, in [0, 1].
  double formula_share() const;

 private:
  std::vector<MemoryModel> laws_;  // the formula first
  std::vector<double> weights_;
};

}  // namespace dsat::guided

#endif  // DSAT_PLUGINS_ZERO_MODEL_MEMORY_MEMORY_MIXTURE_H_
