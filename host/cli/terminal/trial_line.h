// One line for a trial that has ended: what was tried, what came of it, how far that is from the best until then.
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
  int max_trials = 0;    // of the study: how wide its numbers get
  bool verbose = false;  // with peak, reason and note
};

// The trial's value of the metric; nullopt: it has none.
std::optional<double> value_of(const host::TrialRecord& trial, const std::string& metric);

// "+4.1 %": how much better (above 0) or worse `value` is than `reference`.
std::string percent_better(double value, double reference, bool maximise);

// `best_before`: the best value before this trial's.
StyledLine trial_line(const host::TrialRecord& trial, std::optional<double> best_before,
                      const TrialLineSettings& settings);

// What a trial is for, where it is no ordinary one of the search: "profile", "your own", "again", "as trial 3".
std::string purpose_of(const host::TrialRecord& trial);

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_TRIAL_LINE_H_
