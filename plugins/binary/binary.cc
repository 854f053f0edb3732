// binary is the binary search of search/lineage_search.h: the first idle lineage continues, else a new one begins. With
// --exact the next micro batch is the middle of the range.
#include "binary/binary.h"

#include <algorithm>

namespace dsat {

using search::Lineage;

Descriptor Binary::descriptor() {
  return {
      "dsat.binary",
      "binary",
      "1.0.0",
      "binary search for the largest micro batch of random configurations",
      {OptionSpec::number("search-range-factor", 1.0, "upper end of a search, as a multiple of the expected ceiling")
           .min(0.01),
       OptionSpec::boolean("exact", false, "search the range of the profile alone, as Determined did")},
      kStateVersion};
}

std::optional<Binary::Step> Binary::next_step(size_t index) const {
  const Lineage& lineage = lineages()[index];
  return exact_ && history().device_memory_known() ? exact_step(lineage) : binary_step(lineage);
}

// Determined's step: the middle of [low, high], rounded down. nullopt: the range is empty.
std::optional<Binary::Step> Binary::exact_step(const Lineage& lineage) const {
  if (!at_start_) at_start_ = std::make_unique<const search::TrialHistory>(study());
  const Json smallest = at_start_->merged(overrides(lineage.configuration, 0));
  const double expected = at_start_->ceiling(at_start_->setup(smallest)).likely;
  int64_t high = std::max<int64_t>(0, micro_batches().rank_at_or_below(range_factor_ * expected));
  high = std::min(high, micro_batches().count() - 1);
  if (lineage.too_big) high = std::min(high, *lineage.too_big - 1);
  if (lineage.failed) high = std::min(high, *lineage.failed - 1);
  if (high < lineage.low) return std::nullopt;
  const int64_t middle = lineage.low + (high - lineage.low) / 2;
  return Step{middle, lineage.low, "the middle of " + range(lineage.low, high)};
}

}  // namespace dsat
