// asha: successive halving over random configurations. The resource is the number of trials that a configuration's
// binary search may use.
//
// Source: Li et al., "A System for Massively Parallel Hyperparameter Tuning" (arXiv:1810.05934), as Determined's dsat
// applied it. Rung i allows min-binary-search-trials x divisor^(asha-early-stopping + i) trials. The best 1/divisor of
// the configurations that have completed a rung are promoted: the highest rung first, and in a rung the configuration
// with the most trials. A rung compares configurations by their best metric within the trials of that rung; one without
// a metric is never promoted. A search that ends early has completed its rung. When no new configuration is left, the
// searches that wait for a promotion continue, best first, so that no allowed trial stays unused.
//
// Cost: a decision takes logarithmic time; rungs are kept sorted and split as lineages change.
// Threading, errors and state: as in search/lineage_search.h.
#ifndef DSAT_PLUGINS_ASHA_ASHA_H_
#define DSAT_PLUGINS_ASHA_ASHA_H_

#include <cstdint>
#include <set>
#include <vector>

#include "search/lineage_search.h"

namespace dsat {

class Asha final : public search::LineageSearch {
 public:
  static Descriptor descriptor();
  Asha(Host host, const Options& options);

 protected:
  std::optional<size_t> choose() override;
  void changed(size_t index) override;

 private:
  // The order of lineages: the better metric first, those without a metric last. A tie goes to the older lineage.
  struct Standing {
    bool unmeasured = false;
    double cost = 0;
    size_t index = 0;
    bool operator<(const Standing& other) const;
  };
  // The lineages that have completed a rung, split into the best 1/divisor and the rest. Some are now in a higher rung.
  struct Rung {
    std::set<Standing> best, rest;
    std::set<Standing> promotable;  // members of `best` that are not promoted yet
    size_t unmeasured = 0;          // lineages without a metric, all in `rest`
  };
  // The entry of a lineage in the rungs and sets below.
  struct Listing {
    Standing standing;            // by all its trials
    std::vector<Standing> rungs;  // the completed rungs from the lowest, each by the trials up to it
    int64_t rung = 0;             // the current rung
    bool unfinished = false, idle = false;
  };

  int64_t trials_of_rung(int64_t rung) const;
  bool completed_its_rung(const search::Lineage& lineage) const;
  Standing standing_of(size_t index, std::optional<double> metric) const;
  Standing standing_in(size_t index, int64_t rung) const;
  Listing listing_of(size_t index) const;
  void list(const Listing& listing);
  void unlist(const Listing& listing);
  void balance(int64_t rung);
  bool waits_in(const Standing& standing, int64_t rung) const;
  std::optional<size_t> promote();

  int64_t max_rungs_;
  int64_t min_trials_;
  int64_t divisor_;
  int64_t early_stopping_;
  std::vector<Listing> listings_;  // by lineage
  std::vector<Rung> rungs_;
  std::set<size_t> unfinished_;  // idle lineages whose rung allows more trials
  std::set<Standing> idle_;
};

}  // namespace dsat

#endif  // DSAT_PLUGINS_ASHA_ASHA_H_
