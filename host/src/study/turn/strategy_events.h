// The events of a trial's end, as its strategy gets them: the result of a completed trial, then the exit of every
// trial.
//
// Threading: pure functions.
#ifndef DSAT_HOST_STUDY_TURN_STRATEGY_EVENTS_H_
#define DSAT_HOST_STUDY_TURN_STRATEGY_EVENTS_H_

#include <cstdint>
#include <optional>

#include "plugin/strategy.h"
#include "record/trial.h"

namespace dsat::host {

// `device_memory_bytes`: added to a result that does not report it; nullopt: nothing is added.
StrategyEvent result_event(const Trial& trial, std::optional<uint64_t> device_memory_bytes);
StrategyEvent exit_event(const Trial& trial);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_TURN_STRATEGY_EVENTS_H_
