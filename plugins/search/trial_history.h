// The history of a study's trials: the measured configurations, and how large a micro batch fits.
//
// The history learns from study.observations and from the searcher's own trials. Only an out-of-memory trial is an
// upper bound; a trial that failed or timed out shows nothing about memory.
// Cost: a decision costs the same however long the study is. Bounds are kept as Pareto fronts, each trial updates the
//   best ones, and the memory model is fitted to a window of the observations, ever more rarely.
// Threading: one thread. Ownership: copies what it needs. Units: samples (micro batches), bytes.
// Errors: a malformed profile or observation throws dsat::Error or a JSON error.
#ifndef DSAT_PLUGINS_SEARCH_TRIAL_HISTORY_H_
#define DSAT_PLUGINS_SEARCH_TRIAL_HISTORY_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "dsat/config/space.h"
#include "dsat/cost/memory.h"
#include "dsat/cost/observation_window.h"
#include "dsat/searcher.h"

namespace dsat::search {

// The largest micro batch of one configuration, as far as it is known.
struct Ceiling {
  double certain = 0;              // the largest that almost surely fits: the lower end of the 90 % interval
  double likely = 0;               // the largest that is expected to fit
  double possible = 0;             // the largest that may still fit: the upper end of the 90 % interval
  int64_t fits = 0;                // the largest that is known to fit; 0: none
  std::optional<int64_t> too_big;  // the smallest that is known not to fit
};

// A tried configuration with its micro batch.
struct TriedConfiguration {
  TrialId trial = kNoTrial;              // the first trial with a measurement; while there is none, the first trial
  Outcome outcome = Outcome::completed;  // out of memory or a failure only if no trial completed
  std::optional<double> metric;          // the mean over its trials
};

class TrialHistory {
 public:
  explicit TrialHistory(const Study& study);

  // The base configuration with overrides merged over it.
  Json merged(const Json& overrides) const;
  cost::Setup setup(const Json& merged) const;

  // Learns from an ended trial. `merged`: its whole configuration. A failed configuration is not asked for again.
  void learn(TrialId trial, const Json& merged, Outcome outcome, std::optional<double> metric,
             std::optional<double> peak_bytes);

  std::optional<TriedConfiguration> find(const Json& merged) const;
  Ceiling ceiling(const cost::Setup& setup) const;
  bool device_memory_known() const { return inputs_.device_memory_bytes.has_value(); }

  // May this setup hold more than the memory model expects? Its model rests on trials with other values whose effect on
  // memory is unknown.
  bool is_beyond_model(const cost::Setup& setup) const;

  // Has this stage run out of memory, and is the probability that `setup` fits below one in twenty?
  bool hopeless(const cost::Setup& setup) const;

  // Has the stage run out of memory, and completed no trial?
  bool is_doubtful(int stage) const;
  // Has no trial completed in any stage?
  bool nothing_fits() const;

  // The largest micro batch that completed in a stage; 0: none.
  int64_t largest_fit(int stage) const;

  // Is metric a better than metric b?
  bool better(double a, double b) const { return maximise_ ? a > b : a < b; }
  // The configuration with the best mean, among all or in one stage; a tie goes to the lower id.
  struct BestTrial {
    TrialId trial = kNoTrial;
    double metric = 0;
    int64_t micro_batch = 0;
  };
  std::optional<BestTrial> best() const { return best_of(std::nullopt); }
  std::optional<BestTrial> best_of(std::optional<int> stage) const;

 private:
  struct HistoryEntry {  // of a tried configuration with its micro batch
    TrialId first = kNoTrial;
    bool out_of_memory = false;
    double sum = 0;
    int count = 0;  // of trials that reported the metric
    int stage = 0;
    int64_t micro_batch = 0;
  };

  // Configurations that fitted, or that ran out of memory. One is left out if another one implies its bound.
  class ParetoFront {
   public:
    explicit ParetoFront(bool fits) : fits_(fits) {}
    void add(const cost::Setup& seen);
    const std::vector<cost::Setup>& setups() const { return setups_; }

   private:
    bool implies(const cost::Setup& a, const cost::Setup& b) const;
    bool fits_;
    std::vector<cost::Setup> setups_;
  };
  // What trials show of one combination of values whose effect on memory is unknown.
  struct Unread {
    int64_t fits = 0;                                       // the largest micro batch that completed
    int64_t too_big = std::numeric_limits<int64_t>::max();  // the smallest that ran out of memory
    bool ran_out() const { return too_big < std::numeric_limits<int64_t>::max(); }
  };
  struct StageHistory {
    int64_t fits = 0;           // the largest micro batch that completed
    std::set<int64_t> too_big;  // micro batches that ran out of memory
    std::optional<BestTrial> best;
    std::map<std::string, Unread> unread;  // by Setup::unread
  };

  std::string key(Json merged) const;
  void observe(const cost::Observation& observation);
  void compare(const HistoryEntry& entry, TrialId before);
  const cost::MemoryFit& fit() const;
  void bound(Ceiling& ceiling, const cost::Setup& setup) const;
  void look_beyond(Ceiling& ceiling, const cost::Setup& setup) const;

  bool maximise_;
  bool any_peak_ = false;
  bool accumulation_follows_;  // from a fixed global batch
  int64_t data_parallel_size_;
  Json base_config_;
  std::vector<std::string> unread_keys_;
  cost::Inputs inputs_;
  ParetoFront fitted_{true}, ran_out_{false};
  std::map<int, StageHistory> stages_;
  cost::ObservationWindow window_;
  std::vector<cost::Observation> observations_;  // for the next fit
  int64_t learned_ = 0;
  std::unordered_map<std::string, HistoryEntry> measured_;
  std::unordered_map<std::string, TriedConfiguration> failed_;  // failed, timed out or refused
  mutable std::optional<cost::MemoryFit> fit_;                  // of observations_, made on first use
};

}  // namespace dsat::search

#endif  // DSAT_PLUGINS_SEARCH_TRIAL_HISTORY_H_
