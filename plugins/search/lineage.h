// A lineage: one configuration, and the search for its best micro batch. Searchers differ in how a lineage picks its
// next micro batch and which lineage continues. A trial's end means the same for all.
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

  int64_t low = 0;                 // all ranks below it are settled
  std::optional<int64_t> too_big;  // the smallest rank that ran out of memory
  std::optional<int64_t> failed;   // the smallest rank that failed for another reason
  int64_t failures = 0;            // trials that did
  std::optional<int64_t> top;      // the largest rank that completed
  std::optional<int64_t> best_rank;
  std::optional<double> best_metric;

  int64_t trials = 0;                             // trials that completed or gave a bound; asha and random count them
  std::vector<std::optional<double>> best_after;  // the best metric after each of these trials
  int64_t rung = 0;                               // asha's rung
  bool ended = false;                             // nothing is left to try
  bool again = false;                             // the last trial was lost, and is run once more
  TrialId last = kNoTrial;                        // the parent of the next trial
  TrialId open = kNoTrial;                        // the running trial
  int64_t open_rank = 0;                          // rank of the running trial
  std::optional<double> open_metric;              // metric of the running trial, before its exit

  bool idle() const { return !ended && open == kNoTrial; }

  // Is the largest micro batch so far also the best? Only then is a search beyond the expected ceiling worth it.
  bool best_at_top() const { return top && best_rank && *top == *best_rank; }

  // Did a larger micro batch fail for another reason than memory? A data set of 300 samples or a script's own maximum
  // can be the reason.
  bool fails_above() const { return failed && top && *failed > *top; }

  // Processes the end of a trial at `rank`. `better(a, b)`: is metric a better than b?
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
    case Outcome::diverged:
      // A smaller micro batch may still run. After two failures and no success the configuration fails at any size.
      ++failures;
      ended = rank == 0 || (failed && !top);
      if (!failed || rank < *failed) failed = rank;
      count_trial();
      return;
    case Outcome::invalid_config:
      // A smaller micro batch may be accepted, and asking costs nothing.
      ended = rank == 0 || (failed && !top);
      if (!failed || rank < *failed) failed = rank;
      return;
    case Outcome::lost:
      // The configuration did not cause the loss, so the trial is run once more, but only once.
      ended = lost_before;
      again = !lost_before;
      return;
    default:
      // A configuration that hangs will not do better at another micro batch.
      ended = true;
      return;
  }
}

}  // namespace dsat::search

#endif  // DSAT_PLUGINS_SEARCH_LINEAGE_H_
