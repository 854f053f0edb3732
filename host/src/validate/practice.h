// A strategy at practice: studies that are made up, and trainings that answer at once.
//
// Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_VALIDATE_PRACTICE_H_
#define DSAT_HOST_VALIDATE_PRACTICE_H_

#include <string>

#include "dsat/host/plugins.h"
#include "dsat/testing.h"

namespace dsat::host {

// Stages, a few axes, a profile for a searcher; as many trials, so many of them at a time.
dsat::Study practice_study(const PluginInfo& plugin, int max_trials, int concurrent);

// Why a study would refuse a trial with these overrides (invalid_config), in one line; empty: it would run it.
std::string why_refused(const dsat::Study& study, const Json& overrides);

// A training that is faster with larger micro batches and higher stages, until it runs out of memory.
testing::Answer practice_answer(const testing::Trial& trial);

// All outcomes there are, one after the other, whatever was asked for.
testing::Answer troubled_answer(const testing::Trial& trial);

}  // namespace dsat::host

#endif  // DSAT_HOST_VALIDATE_PRACTICE_H_
