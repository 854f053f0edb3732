// The events of a strategy: the description of the study at its start (dsat_study.study_json), then for each of its
// trials the exit, and before it the result if the trial completed.
//
// Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_STUDY_TURN_STRATEGY_EVENTS_H_
#define DSAT_HOST_STUDY_TURN_STRATEGY_EVENTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "plugin/strategy.h"
#include "study/state/study_state.h"

namespace dsat::host {

// For every so many trials that can run, a strategy is asked for a spare one. The spare trial takes the slot of an
// ended trial that waits for the delivery of older ones.
inline constexpr int kSlotsPerSpareTrial = 5;

// The study as it stands, for the strategy at work.
Json describe_study(const StudyState& state);

// Adds DeepSpeed's version to the profile if a trial has shown it and the profiler has not written one. The cost model
// counts the buffers of that version.
Json with_engine_version(Json profile, const std::vector<Trial>& trials);

// `device_memory_bytes`: added to a result that does not report it; nullopt: nothing is added.
StrategyEvent result_event(const Trial& trial, std::optional<uint64_t> device_memory_bytes);
StrategyEvent exit_event(const Trial& trial);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_TURN_STRATEGY_EVENTS_H_
