// Invented studies for a strategy, and trainings that end at once.
// Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_VALIDATE_PRACTICE_H_
#define DSAT_HOST_VALIDATE_PRACTICE_H_

#include <string>

#include "dsat/host/plugins.h"
#include "dsat/testing.h"

namespace dsat::host {

// Returns a study with stages, a few axes and, for a searcher, a profile; `concurrent` trials run at a time.
dsat::Study practice_study(const PluginInfo& plugin, int max_trials, int concurrent);

// Returns in one line why a study would refuse these overrides (invalid_config); empty: it would run the trial.
std::string why_refused(const dsat::Study& study, const Json& overrides);

// A training that is faster with larger micro batches and higher stages, until it runs out of memory.
testing::Answer practice_answer(const testing::Trial& trial);

// Returns all kinds of outcome in turn, whatever was asked for.
testing::Answer troubled_answer(const testing::Trial& trial);

}  // namespace dsat::host

#endif  // DSAT_HOST_VALIDATE_PRACTICE_H_
