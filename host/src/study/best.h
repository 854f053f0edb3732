// Which configuration is the best so far.
//
// Purpose: choose_best decides from all trials; BestSoFar keeps the decision while trials end, without looking at all
//   of them each time.
// Threading: control thread. Units: the metric's own.
#ifndef DSAT_HOST_STUDY_BEST_H_
#define DSAT_HOST_STUDY_BEST_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

// The measured trials of one identity: one configuration, whose metrics are their means.
struct MeasuredConfiguration {
  uint64_t trial = 0;  // the first of them
  int count = 0;
  double metric = 0;
  Json metrics;
  std::optional<uint64_t> peak_bytes;  // the highest
};

// Every completed trial that has the metric competes, whatever its kind; in the order of first trials.
std::vector<MeasuredConfiguration> measured_configurations(const std::vector<Trial>& trials, const std::string& metric);

// A trial's configuration as best_ds_config.json has it.
Json best_config(Json trial_config);

// The configuration of the trial that the searcher named as the best, if it was measured, else the best mean; a tie
// goes to the lower id.
std::optional<BestRecord> choose_best(const std::vector<Trial>& trials, const std::string& metric, bool maximise,
                                      std::optional<uint64_t> named);

class BestSoFar {
 public:
  BestSoFar(std::string metric, bool maximise) : metric_(std::move(metric)), maximise_(maximise) {}

  // A trial has ended.
  void add(const Trial& trial);
  // The searcher has finished and named a trial, or none, as the best.
  void set_named(std::optional<uint64_t> trial);
  // Everything is to be looked at again.
  void forget() { stale_ = true; }

  // Decides anew where add, set_named or forget gave reason to. True: the best is another one, or its mean is.
  bool refresh(const std::vector<Trial>& trials);
  const std::optional<BestRecord>& get() const { return best_; }

 private:
  bool better(double a, double b) const { return maximise_ ? a > b : a < b; }

  std::string metric_;
  bool maximise_;
  std::optional<BestRecord> best_;
  std::optional<BestRecord> candidate_;  // better than best_, since the last refresh
  std::optional<uint64_t> named_;
  bool stale_ = false;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_BEST_H_
