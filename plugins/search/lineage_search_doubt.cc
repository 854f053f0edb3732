// The part of LineageSearch that asks whether a stage fits at all. If a stage has run out of memory and completed
// nothing, its lineages go on at the smallest micro batch. If that fails too, the values that need the least memory
// come next: if they do not fit, nothing does, and the stage is left.
#include <algorithm>

#include "search/frugal.h"
#include "search/lineage_search.h"

namespace dsat::search {

bool LineageSearch::is_doubtful(int stage) const { return leaves_stages() && history_->is_doubtful(stage); }

bool LineageSearch::is_looked_into(int stage) const {
  return std::any_of(lineages_.begin(), lineages_.end(),
                     [&](const Lineage& lineage) { return !lineage.ended && lineage.configuration.stage == stage; });
}

// A stage whose frugal configurations have all ended is left. If other stages fit, the memory model's doubt is enough.
std::optional<Configuration> LineageSearch::next_frugal() {
  for (const config::StageSpace& stage : space_.stages) {
    if (!is_doubtful(stage.stage)) continue;
    if (is_looked_into(stage.stage)) continue;
    for (Configuration& frugal : frugal_configurations(stage)) {
      if (!is_taken(frugal) && (history_->nothing_fits() || may_fit(frugal))) return std::move(frugal);
    }
    configurations_->drain(stage.stage);
  }
  return std::nullopt;
}

}  // namespace dsat::search
