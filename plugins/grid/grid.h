// grid: DeepSpeed's grid search, in an order that does not depend on the run.
//
// The stages take turns, the lowest first. A stage begins with the user's own values at num-tuning-micro-batch-sizes
// micro batches: the expected ceiling and the powers of two below it, ascending. Each further choice of values
// (grid_order.h) is one trial, at the best micro batch of the stage so far, or at its own ceiling if larger was better.
// A choice that ran out of memory is measured once more, below that size, and the best of all once more where others
// show that clearly more fits. If the device's memory is unknown, ceilings
// are found by doubling and then by bisection. A stage is left after early-stopping trials without a better one
// (DeepSpeed's tuner_early_stopping). Threading, errors and state: as in search/lineage_search.h.
#ifndef DSAT_PLUGINS_GRID_GRID_H_
#define DSAT_PLUGINS_GRID_GRID_H_

#include <cstdint>
#include <map>
#include <string>

#include "grid/grid_order.h"
#include "search/lineage_search.h"

namespace dsat {

class Grid final : public search::LineageSearch {
 public:
  static Descriptor descriptor();
  Grid(Host host, const Options& options);

 protected:
  std::optional<size_t> choose() override;
  std::optional<search::Configuration> draw(uint64_t index, const Usable& usable) override;
  std::optional<Step> next_step(size_t index) const override;
  std::string nothing_left() const override;

 private:
  struct Stage {
    search::GridOrder order;
    size_t taken = 0;  // every choice before this position is taken
  };
  Stage& stage_of(const config::StageSpace& space);
  bool left(int stage) const;
  const search::Lineage& first_of(int stage) const;
  bool leads_stage(const search::Lineage& lineage) const;
  std::optional<Step> first_choice_step(const search::Lineage& lineage) const;
  double expected_by_trials(const search::Lineage& lineage, const search::Ceiling& known) const;
  bool may_hold_more(const search::Lineage& lineage) const;
  int64_t expected_top(const search::Lineage& lineage) const;
  std::optional<Step> larger_step(const search::Lineage& lineage) const;

  int64_t micro_batch_sizes_;
  int64_t early_stopping_;  // 0: never
  std::map<int, Stage> stages_;
};

}  // namespace dsat

#endif  // DSAT_PLUGINS_GRID_GRID_H_
