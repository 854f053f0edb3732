// A lineage: one configuration, and the search for its best micro batch. Searchers differ in how a lineage picks its
// next micro batch and in which lineage goes on; what a trial's end means for its lineage is the same for all.
// Threading: plain values. Errors: a damaged JSON form throws a JSON error. Units: ranks count the legal micro batches
// (micro_batches.h).
#ifndef DSAT_PLUGINS_SEARCH_LINEAGE_H_
#define DSAT_PLUGINS_SEARCH_LINEAGE_H_

#include <cstdint>
#include <optional>

#include "dsat/searcher.h"
#include "search/configurations.h"

namespace dsat::search {

struct Lineage {
  Configuration configuration;

  int64_t low = 0;                 // every rank below it is settled
  std::optional<int64_t> too_big;  // the smallest rank that ran out of memory
  std::optional<int64_t> top;      // the largest rank that completed
  std::optional<int64_t> best_rank;
  std::optional<double> best_metric;

  int64_t trials = 0;                 // that completed or ran out of memory: the resource of asha and random
  int64_t rung = 0;                   // asha
  bool ended = false;                 // nothing left to try
  bool again = false;                 // the machinery lost the last trial: it is asked for once more
  TrialId last = kNoTrial;            // the trial that the next one follows from
  TrialId open = kNoTrial;            // the trial that runs
  int64_t open_rank = 0;              // its micro batch
  std::optional<double> open_metric;  // reported by its result, before its exit

  bool idle() const { return !ended && open == kNoTrial; }

  // Is the largest micro batch so far also the best? Only then is there a reason to look beyond the expected ceiling.
  bool best_at_top() const { return top && best_rank && *top == *best_rank; }

  // Takes in the end of a trial at `rank`. `better(a, b)`: is metric a better than b?
  template <class Better>
  void settle(int64_t rank, Outcome outcome, std::optional<double> metric, const Better& better);
};

Json to_json(const Lineage& lineage);
Lineage lineage_from_json(const Json& json);

template <class Better>
void Lineage::settle(int64_t rank, Outcome outcome, std::optional<double> metric, const Better& better) {
  const bool lost_before = again;
  again = false;
  switch (outcome) {
    case Outcome::completed:
      ++trials;
      low = rank + 1;
      if (!top || rank > *top) top = rank;
      if (metric && (!best_metric || better(*metric, *best_metric))) {
        best_metric = metric;
        best_rank = rank;
      }
      return;
    case Outcome::out_of_memory:
      ++trials;
      if (!too_big || rank < *too_big) too_big = rank;
      if (rank == 0) ended = true;
      return;
    case Outcome::lost:
      // The configuration did not cause it: the trial is asked for once more, and no more.
      ended = lost_before;
      again = !lost_before;
      return;
    default:
      // A configuration that fails or hangs says nothing about memory; a larger or smaller micro batch is no better.
      ended = true;
      return;
  }
}

}  // namespace dsat::search

#endif  // DSAT_PLUGINS_SEARCH_LINEAGE_H_
