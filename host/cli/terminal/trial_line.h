// One line for a trial that has ended: its configuration, its result, and the distance from the best so far.
//
// Threading: pure functions. Errors: none.
#ifndef DSAT_CLI_TERMINAL_TRIAL_LINE_H_
#define DSAT_CLI_TERMINAL_TRIAL_LINE_H_

#include <optional>
#include <string>

#include "dsat/host/record.h"
#include "terminal/style.h"

namespace dsat::cli {

struct TrialLineSettings {
  std::string metric;  // canonical name
  bool maximise = true;
  int max_trials = 0;    // of the study; gives the width of trial numbers
  bool verbose = false;  // with peak, reason and note
};

// The trial's value of the metric; nullopt: it has none.
std::optional<double> value_of(const host::TrialRecord& trial, const std::string& metric);

// "+4.1 %": how much better (above 0) or worse `value` is than `reference`.
std::string percent_better(double value, double reference, bool maximise);

// `best_before`: the best value before this trial's.
StyledLine trial_line(const host::TrialRecord& trial, std::optional<double> best_before,
                      const TrialLineSettings& settings);

// The purpose of a trial that is not an ordinary trial of the search: "profile", "your own", "again", "as trial 3".
std::string purpose_of(const host::TrialRecord& trial);

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_TRIAL_LINE_H_
