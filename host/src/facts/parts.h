// The steps of read_study_facts.
// Threading: pure functions. Errors: none. Each needs `record`, `metric` and `maximise`, and the results of the
// functions above it in this file.
#ifndef DSAT_HOST_FACTS_PARTS_H_
#define DSAT_HOST_FACTS_PARTS_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

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

}  // namespace dsat::host

#endif  // DSAT_HOST_FACTS_PARTS_H_
