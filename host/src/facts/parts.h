// The pieces that read_study_facts is put together from.
//
// Threading: pure functions. Errors: none. Each takes facts whose `record`, `metric` and `maximise` are filled in, and
// what stands before it in this file.
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

// Everything about each trial but its estimate. `now`: the latest moment, for what still runs.
std::vector<TrialFacts> trial_facts(const StudyFacts& facts, const std::vector<Trial>& trials, Time now);

// The latest moment that a study knows: of a live one on real devices the clock's, else the journal's.
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
