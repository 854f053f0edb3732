// random: random configurations, each with a few randomly drawn micro batches.
//
// Determined's method: a trial's micro batch is low + Binomial(high - low, 1/2). A new configuration starts above the
// best of its stage (low = best + 1). A configuration whose range is used up doubles its upper end. It is left when it
// ran out of memory at its lower end, after trials-per-random-config trials, or when another configuration of its stage
// completed a larger batch. The search ends early after early-stopping trials without a new best.
//
// Two things differ, because the original spent most of its trials out of memory:
// - A draw never lies above what the study has learned: an out-of-memory trial of the same or a smaller configuration,
//   and the upper end of the cost model's interval. If the best of a stage is already at the ceiling, the new
//   configuration is measured there.
// - Stage 3 is not given up once stage 1 or 2 has completed a trial. That rule assumed that stage 3 is always slower,
//   which is wrong if its smaller memory allows larger batches.
// Threading, errors and state: as in search/lineage_search.h.
#ifndef DSAT_PLUGINS_RANDOM_RANDOM_H_
#define DSAT_PLUGINS_RANDOM_RANDOM_H_

#include <cstdint>

#include "search/lineage_search.h"

namespace dsat {

class RandomSearch final : public search::LineageSearch {
 public:
  static Descriptor descriptor();
  RandomSearch(Host host, const Options& options);

 protected:
  std::optional<size_t> choose() override { return idle_or_new(); }
  std::optional<Step> next_step(size_t index) const override;
  std::optional<std::string> enough() const override;

 private:
  struct RankRange {
    int64_t low = 0, high = 0;
  };
  std::optional<RankRange> range_of(const search::Lineage& lineage) const;
  bool outrun(size_t index) const;

  int64_t trials_per_configuration_;
  int64_t early_stopping_;  // 0: never
};

}  // namespace dsat

#endif  // DSAT_PLUGINS_RANDOM_RANDOM_H_
