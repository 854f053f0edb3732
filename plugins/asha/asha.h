// asha: successive halving over random configurations; the resource is the number of trials that a configuration's
// binary search may use.
//
// Source: Li et al., "A System for Massively Parallel Hyperparameter Tuning" (arXiv:1810.05934), as Determined's dsat
// applied it: rung i allows min-binary-search-trials x 2^(asha-early-stopping + i) trials; of the configurations that
// have completed a rung, the best 1/divisor are promoted, from the highest rung first and among those the one with the
// most trials. A search that ends early has completed its rung. When no new configuration is left to draw, the
// searches that wait for a promotion go on, best first: a trial that may be spent is spent.
#ifndef DSAT_PLUGINS_ASHA_H_
#define DSAT_PLUGINS_ASHA_H_

#include <cstdint>
#include <vector>

#include "lineage_search.h"

namespace dsat {

class Asha final : public search::LineageSearch {
 public:
  static Descriptor descriptor();
  Asha(Host host, const Options& options);

 protected:
  std::optional<size_t> choose() override;

 private:
  int64_t trials_of_rung(int64_t rung) const;
  bool completed_its_rung(const search::Lineage& lineage) const;
  std::vector<size_t> best_of_rung(int64_t rung) const;
  std::optional<size_t> promote();
  std::optional<size_t> best_waiting() const;
  bool ranks_before(size_t a, size_t b) const;

  int64_t max_rungs_;
  int64_t min_trials_;
  int64_t divisor_;
  int64_t early_stopping_;
};

}  // namespace dsat

#endif  // DSAT_PLUGINS_ASHA_H_
