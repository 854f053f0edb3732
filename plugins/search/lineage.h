// A lineage: one configuration, and the search for its best micro batch. Searchers differ in how a lineage picks its
// next micro batch and in which lineage goes on; what a trial's end means for its lineage is the same for all.
// Threading: plain values. Errors: a damaged JSON form throws a JSON error. Units: ranks count the legal micro batches
// (micro_batches.h).
#ifndef DSAT_PLUGINS_SEARCH_LINEAGE_H_
#define DSAT_PLUGINS_SEARCH_LINEAGE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "dsat/searcher.h"
#include "search/configurations.h"

namespace dsat::search {

struct Lineage {
  Configuration configuration;

  int64_t low = 0;                 // every rank below it is settled
  std::optional<int64_t> too_big;  // the smallest rank that ran out of memory
  std::optional<int64_t> failed;   // the smallest rank that failed for another reason
  std::optional<int64_t> top;      // the largest rank that completed
  std::optional<int64_t> best_rank;
  std::optional<double> best_metric;

  int64_t trials = 0;                             // that completed or showed a bound: the resource of asha and random
  std::vector<std::optional<double>> best_after;  // the best metric after each of them
  int64_t rung = 0;                               // asha
  bool ended = false;                             // nothing left to try
  bool again = false;                             // the machinery lost the last trial: it is asked for once more
  TrialId last = kNoTrial;                        // the trial that the next one follows from
  TrialId open = kNoTrial;                        // the trial that runs
  int64_t open_rank = 0;                          // its micro batch
  std::optional<double> open_metric;              // reported by its result, before its exit

  bool idle() const { return !ended && open == kNoTrial; }

  // Is the largest micro batch so far also the best? Only then is there a reason to look beyond the expected ceiling.
  bool best_at_top() const { return top && best_rank && *top == *best_rank; }

  // Did a larger micro batch fail for no lack of memory where a smaller one completed? A data set of 300 samples or a
  // script's own maximum does that.
  bool fails_above() const { return failed && top && *failed > *top; }

  // Takes in the end of a trial at `rank`. `better(a, b)`: is metric a better than b?
  template <class Better>
  void settle(int64_t rank, Outcome outcome, std::optional<double> metric, const Better& better);

 private:
  void count_trial() {
    ++trials;
    best_after.push_back(best_metric);
  }
};

Json to_json(const Lineage& lineage);
Lineage lineage_from_json(const Json& json);

template <class Better>
void Lineage::settle(int64_t rank, Outcome outcome, std::optional<double> metric, const Better& better) {
  const bool lost_before = again;
  again = false;
  switch (outcome) {
    case Outcome::completed:
      low = rank + 1;
      if (!top || rank > *top) top = rank;
      if (metric && (!best_metric || better(*metric, *best_metric))) {
        best_metric = metric;
        best_rank = rank;
      }
      count_trial();
      return;
    case Outcome::out_of_memory:
      if (!too_big || rank < *too_big) too_big = rank;
      if (rank == 0) ended = true;
      count_trial();
      return;
    case Outcome::failed:
      // A smaller micro batch may run. Two failures with nothing that ran show a configuration that fails at any.
      ended = rank == 0 || (failed && !top);
      if (!failed || rank < *failed) failed = rank;
      count_trial();
      return;
    case Outcome::lost:
      // The configuration did not cause it: the trial is asked for once more, and no more.
      ended = lost_before;
      again = !lost_before;
      return;
    default:
      // A configuration that hangs or is refused shows nothing about micro batches: none is better.
      ended = true;
      return;
  }
}

}  // namespace dsat::search

#endif  // DSAT_PLUGINS_SEARCH_LINEAGE_H_
