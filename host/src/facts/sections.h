// The sections of a study's facts, in the order in which read_study_facts fills them in.
// Threading: pure functions. Errors: none. Each needs `record`, `metric` and `maximise`, and the results of the
// functions above it in this file.
#ifndef DSAT_HOST_FACTS_SECTIONS_H_
#define DSAT_HOST_FACTS_SECTIONS_H_

#include <chrono>
#include <optional>
#include <vector>

#include "dsat/config/json.h"
#include "dsat/host/facts.h"
#include "facts/memory.h"
#include "record/trial.h"

namespace dsat::host {

using Time = std::chrono::system_clock::time_point;

// Returns everything about each trial except its memory estimate. `now`: the latest moment, for running trials.
std::vector<TrialFacts> trial_facts(const StudyFacts& facts, const std::vector<Trial>& trials, Time now);

// Returns the clock's time for a running study on real devices, otherwise the latest time in the journal.
Time latest_moment(const StudyFacts& facts, bool simulated);

Progress progress_of(const StudyFacts& facts, Time now);
std::vector<BestStep> best_path(const StudyFacts& facts);
// `spent_hours`: of all runs that have ended; nullopt: those of the last runs are summed.
Payback payback_of(const StudyFacts& facts, double spent_hours);

std::vector<StageFacts> stage_facts(const StudyFacts& facts, const std::vector<Trial>& trials,
                                    const MemoryEstimates& estimates);

std::vector<Knob> knobs_of(const StudyFacts& facts);

// In the configuration's order.
std::vector<config::Leaf> leaves_without_autotuning(const Json& config);

// Returns the user's own configuration as it was given, from a plan and the settings; an axis has its first value, as
// in the measured one. nullopt: the plan has only a substitute, because a trace has no configuration.
std::optional<Json> own_as_given(const Json& plan, const Json& settings);

// Returns values of `best` that differ from `own`, in the order of `best`, then values that only `own` has; without
// `autotuning`, and without what is DeepSpeed's default where `own` leaves it out.
std::vector<ConfigChange> changes_between(const Json& own, const Json& best);

}  // namespace dsat::host

#endif  // DSAT_HOST_FACTS_SECTIONS_H_
