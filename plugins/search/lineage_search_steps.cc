// The part of LineageSearch that chooses the next micro batch of a lineage: a binary search for the largest one that
// pays, bounded by settled ranks, by the ceiling and by failures.
#include <algorithm>
#include <iterator>

#include "search/lineage_search.h"

namespace dsat::search {

Ceiling LineageSearch::ceiling(const Lineage& lineage) const {
  return history_->ceiling(history_->setup(history_->merged(overrides(lineage.configuration, 0))));
}

// The rank from which trials of this lineage fail. Failures of other lineages count if this lineage has failed, or if
// two others have or one has twice, and if no micro batch as large has completed.
std::optional<int64_t> LineageSearch::failing_rank(const Lineage& lineage) const {
  const auto shared = failing_.upper_bound({largest_completed(), true});
  if (shared == failing_.end()) return lineage.failed;
  const auto& [rank, has_failed_twice] = *shared;
  const bool confirmed = lineage.failed || has_failed_twice || std::next(shared) != failing_.end();
  return confirmed ? std::min(lineage.failed.value_or(rank), rank) : lineage.failed;
}

// The first trial takes a rank that completed elsewhere, or the smallest, to see whether the configuration runs at all.
// Later trials take the middle.
int64_t LineageSearch::below_failure(const Lineage& lineage, int64_t high) const {
  const int64_t completed = largest_completed();
  if (completed >= lineage.low && completed <= high) return completed;
  return lineage.top ? lineage.low + (high - lineage.low) / 2 : lineage.low;
}

int64_t LineageSearch::last_allowed(const Lineage& lineage, const Ceiling& ceiling) const {
  int64_t last = micro_batches_->count() - 1;
  if (const std::optional<int64_t> failing = failing_rank(lineage)) {
    // A search for the exact size would lose a trial at each step.
    constexpr double kClose = 1.5;
    const int64_t completed = largest_completed();
    const bool is_close = completed >= 0 && static_cast<double>(micro_batches_->at(*failing)) <=
                                                kClose * static_cast<double>(micro_batches_->at(completed));
    last = std::min(last, is_close && completed < *failing ? completed : *failing - 1);
  }
  if (lineage.too_big) last = std::min(last, *lineage.too_big - 1);
  if (ceiling.too_big)
    last = std::min(last, micro_batches_->rank_at_or_below(static_cast<double>(*ceiling.too_big - 1)));
  return last;
}

// The size that the model calls possible, but not far above the likely one. If the device memory is unknown, the end is
// the largest size that has run.
double LineageSearch::upper_end(const Ceiling& ceiling) const {
  constexpr double kFarthest = 1.5;
  if (!history_->device_memory_known()) return ceiling.likely;
  return std::min(ceiling.possible, kFarthest * ceiling.likely);
}

// One trial at the upper end of what almost surely fits settles all ranks below, and its measurement is worth having.
// Each such trial raises that end.
std::optional<LineageSearch::Step> LineageSearch::certain_step(const Lineage& lineage, const Ceiling& known,
                                                               int64_t high) const {
  const int64_t certain = std::min(high, micro_batches_->rank_at_or_below(range_factor_ * known.certain));
  if (certain < lineage.low + (high - lineage.low) / 4 || too_fine(lineage, certain)) return std::nullopt;
  return Step{certain, lineage.low, "the largest that almost surely fits"};
}

// Is the distance between the largest completed rank and `high` too small for a trial? Two kinds of lineage are
// searched more closely: the best of the study, and the one with the largest micro batch of its stage, which finds the
// ceiling of the stage despite noise in speeds.
bool LineageSearch::too_fine(const Lineage& lineage, int64_t high) const {
  constexpr int64_t kCloseShare = 50, kCoarseShare = 16;  // 2 and 6 % of the micro batch
  if (precise() || !lineage.top || !history_->device_memory_known()) return false;
  const std::optional<TrialHistory::BestTrial> best = history_->best();
  const bool leads = best && lineage.best_metric && !history_->better(best->metric, *lineage.best_metric);
  const int64_t top = micro_batches_->at(*lineage.top);
  const bool highest = top >= history_->largest_fit(lineage.configuration.stage);
  return (micro_batches_->at(high) - top) * (leads || highest ? kCloseShare : kCoarseShare) <= top;
}

// Is a search above the end of the range worth it? If the device memory is known: when the model calls clearly more
// possible than has run. If it is unknown: while larger batches are better.
bool LineageSearch::goes_beyond(const Lineage& lineage, const Ceiling& known) const {
  constexpr double kWorthwhile = 1.1;
  if (!lineage.top) return false;
  if (!history_->device_memory_known()) return lineage.best_at_top();
  if (precise()) return micro_batches_->rank_at_or_below(known.possible) > *lineage.top;
  return known.possible >= kWorthwhile * static_cast<double>(micro_batches_->at(*lineage.top));
}

int64_t LineageSearch::largest_held(int stage) const {
  int64_t held = 0;
  for (int other = 0; other <= stage; ++other) held = std::max(held, history_->largest_fit(other));
  return held;
}

// With an unknown device memory, a lineage begins at the micro batch that fitted in its stage or in a lower one, which
// needs more memory.
std::optional<LineageSearch::Step> LineageSearch::first_step(const Lineage& lineage, int64_t last) const {
  if (history_->device_memory_known() || lineage.trials > 0) return std::nullopt;
  const int64_t held = largest_held(lineage.configuration.stage);
  const int64_t rank = std::min(last, micro_batches_->rank_at_or_below(static_cast<double>(held)));
  if (rank <= lineage.low) return std::nullopt;
  return Step{rank, lineage.low, "what another configuration is known to hold"};
}

// Determined's binary search between the settled ranks and the ceiling, which every trial may move. If the top of the
// range fitted, the search continues above it, up to three times as far (the midpoint then doubles), but not beyond
// what the model calls possible. So the search finds a ceiling that was guessed too low. If the device memory is
// unknown, the search continues only while larger batches are better.
std::optional<LineageSearch::Step> LineageSearch::binary_step(const Lineage& lineage) const {
  const Ceiling known = ceiling(lineage);
  const int64_t last = last_allowed(lineage, known);
  if (const auto first = first_step(lineage, last)) return first;
  // After a completed trial, micro batches above the likely ceiling mostly run out of memory, so the search ends there.
  const double end = lineage.top && history_->device_memory_known() ? known.likely : upper_end(known);
  int64_t high = std::min(last, micro_batches_->rank_at_or_below(range_factor_ * end));
  if (high < lineage.low && goes_beyond(lineage, known)) {
    const int64_t farthest =
        micro_batches_->rank_at_or_below(3.0 * static_cast<double>(micro_batches_->at(*lineage.top)));
    const int64_t possible = micro_batches_->rank_at_or_below(range_factor_ * known.possible);
    // Divisors may lie farther apart, so the next divisor is always allowed.
    high = std::min({last, possible, std::max(farthest, lineage.low)});
  }
  // The smallest micro batch is tried even if the model doubts it, because a model can be wrong.
  if (lineage.trials == 0) high = std::min(last, std::max(high, lineage.low));
  if (high < lineage.low) return std::nullopt;
  if (lineage.failed) {
    if (too_fine(lineage, high)) return std::nullopt;
    return Step{below_failure(lineage, high), lineage.low, "below a failure in " + range(lineage.low, high)};
  }
  if (const auto sure = certain_step(lineage, known, high)) return sure;
  if (too_fine(lineage, high)) return std::nullopt;
  return Step{lineage.low + (high - lineage.low) / 2, lineage.low, "binary search in " + range(lineage.low, high)};
}

}  // namespace dsat::search
