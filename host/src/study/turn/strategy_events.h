// What a strategy gets: the description of its study at its start (dsat_study.study_json), then for each of its trials
// the result, if it completed, and the exit.
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

// Strategies are asked to keep more trials open than can run: one more for every so many that can. The spare trial
// takes the slot of a trial that has ended and waits until older ones are delivered.
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
