// The best configuration so far.
//
// Purpose: choose_best decides from all trials; BestSoFar keeps the decision while trials end, without looking at all
//   of them each time.
// Threading: control thread. Units: the metric's own.
#ifndef DSAT_HOST_STUDY_STATE_BEST_H_
#define DSAT_HOST_STUDY_STATE_BEST_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "record/measured.h"
#include "record/trial.h"

namespace dsat::host {

// May a configuration with this measured peak become the best? Unknown peaks may.
inline bool may_become_best(std::optional<uint64_t> peak_bytes, std::optional<uint64_t> usable_memory_bytes) {
  return !peak_bytes || !usable_memory_bytes || *peak_bytes <= *usable_memory_bytes;
}

// A trial's configuration as best_ds_config.json has it. Without train_batch_size if the script refuses that key.
Json best_config(Json trial_config, bool has_train_batch = true);

struct BestRules {
  bool measured_again = false;  // the named trial was chosen in the finals, not by the searcher
  // The memory that a device has for a trial. A configuration with a higher peak cannot become the best.
  std::optional<uint64_t> usable_memory_bytes;
  bool has_train_batch = true;  // as best_config() takes it
};

// The measured configurations that may be handed back. A configuration is left out if it failed its verification,
// diverged, has the keys of a twin that diverged, or needs more memory than the rules allow. A configuration that
// failed when it was measured again, or whose trial printed that memory ran out, is left out unless no other is left.
std::vector<MeasuredConfiguration> candidates_for_best(const std::vector<Trial>& trials, const std::string& metric,
                                                       const BestRules& rules);

// The candidate whose trial was named as the best, or else the candidate with the best mean. A tie goes to the lower
// id: what a searcher names is not chosen over an earlier one that measured the same. There is none if the script
// ignores its configuration.
std::optional<BestRecord> choose_best(const std::vector<Trial>& trials, const std::string& metric, bool maximise,
                                      std::optional<uint64_t> named, const BestRules& rules = {});

class BestSoFar {
 public:
  BestSoFar(std::string metric, bool maximise) : metric_(std::move(metric)), maximise_(maximise) {}

  // Adds an ended trial.
  void add(const Trial& trial);
  // Sets the trial that the searcher, or a later phase by measuring again, named as the best; nullopt: none.
  void set_named(std::optional<uint64_t> trial, bool measured_again = false);
  void set_usable_memory(std::optional<uint64_t> bytes);
  void set_has_train_batch(bool has_it);
  // The next refresh looks at all trials again.
  void forget() { stale_ = true; }

  // Decides again if one of the calls above gave a reason. Returns true if the best is another trial, if its mean has
  // changed, or if there is no best any more.
  bool refresh(const std::vector<Trial>& trials);
  const std::optional<BestRecord>& get() const { return best_; }

 private:
  bool better(double a, double b) const { return !is_tie(a, b) && (maximise_ ? a > b : a < b); }

  std::string metric_;
  bool maximise_;
  std::optional<BestRecord> best_;
  std::optional<BestRecord> candidate_;  // better than best_, since the last refresh
  std::optional<uint64_t> named_;
  BestRules rules_;
  bool is_best_doubtful_ = false;  // any configuration that completes without a doubt is better
  bool stale_ = false;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_STATE_BEST_H_
