// binary: binary search for the largest micro batch that fits, one random configuration after another.
//
// Determined's method: draw a configuration and search its micro batch in [1, search-range-factor x expected ceiling].
// A completed trial moves the lower end up, an out-of-memory trial the upper end down. When the range is empty, draw
// the next configuration. As many searches run at once as trials may. With --exact a search is exactly Determined's:
// the profile alone fixes its range, every trial is in the middle, and other configurations change nothing. A trial
// that failed for another reason than memory moves the upper end too. --exact needs a known device memory; without one
// it changes nothing. Threading, errors and state: as in search/lineage_search.h.
#ifndef DSAT_PLUGINS_BINARY_BINARY_H_
#define DSAT_PLUGINS_BINARY_BINARY_H_

#include <memory>

#include "search/lineage_search.h"

namespace dsat {

class Binary final : public search::LineageSearch {
 public:
  static Descriptor descriptor();
  Binary(Host host, const Options& options)
      : LineageSearch(host, options.get<double>("search-range-factor")),
        exact_(options.get<bool>("exact")),
        range_factor_(options.get<double>("search-range-factor")) {}

 protected:
  std::optional<size_t> choose() override { return idle_or_new(); }
  // As in Determined, a search ends when its range is empty, and not before.
  bool precise() const override { return true; }
  bool leaves_stages() const override { return !exact_; }
  std::optional<Step> next_step(size_t index) const override;

 private:
  std::optional<Step> exact_step(const search::Lineage& lineage) const;

  bool exact_;
  double range_factor_;
  mutable std::unique_ptr<const search::TrialHistory> at_start_;  // knows the profile, but no trial of the search
};

}  // namespace dsat

#endif  // DSAT_PLUGINS_BINARY_BINARY_H_
