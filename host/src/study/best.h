// Which configuration is the best so far.
#ifndef DSAT_HOST_STUDY_BEST_H_
#define DSAT_HOST_STUDY_BEST_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

// The measured trials of one identity: one configuration, whose metrics are their means.
struct Measured {
  uint64_t trial = 0;  // the first of them
  int count = 0;
  double metric = 0;
  Json metrics;
  std::optional<uint64_t> peak_bytes;  // the highest
};

// Every completed trial that has the metric competes, whatever its kind; in the order of first trials.
std::vector<Measured> measured_configurations(const std::vector<Trial>& trials, const std::string& metric);

// A trial's configuration as best_ds_config.json has it.
Json best_config(Json trial_config);

// The configuration of the trial that the strategy believes best, if it was measured, else the best mean; a tie goes to
// the lower id.
std::optional<BestRecord> choose_best(const std::vector<Trial>& trials, const std::string& metric, bool maximise,
                                      std::optional<uint64_t> believed);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_BEST_H_
