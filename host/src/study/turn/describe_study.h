// The description of a study that a strategy gets at its start: dsat_study.study_json.
//
// Threading: pure function. Errors: none.
#ifndef DSAT_HOST_STUDY_TURN_DESCRIBE_STUDY_H_
#define DSAT_HOST_STUDY_TURN_DESCRIBE_STUDY_H_

#include <vector>

#include "study/state/study_state.h"

namespace dsat::host {

// Strategies are asked to keep more trials open than can run: one more for every so many that can. The spare trial
// takes the slot of a trial that has ended and waits until older ones are delivered.
inline constexpr int kSlotsPerSpareTrial = 5;

// The study as it stands, for the strategy at work.
Json describe_study(const StudyState& state);

// Adds DeepSpeed's version to the profile if a trial has shown it and the profiler has not written one. The cost model
// counts the buffers of that version.
Json with_engine_version(Json profile, const std::vector<Trial>& trials);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_TURN_DESCRIBE_STUDY_H_
