// Copies the parts of a trial's record and end that its strategy may know.
#include "study/turn/strategy_events.h"

#include <algorithm>

namespace dsat::host {

StrategyEvent result_event(const Trial& trial, std::optional<uint64_t> device_memory_bytes) {
  StrategyEvent event;
  event.kind = StrategyEvent::Kind::result;
  event.trial = trial.id();
  event.step = trial.end ? trial.end->step : 0;
  event.metrics = trial.record.metrics.is_object() ? trial.record.metrics : Json::object();
  // The trial's own figure of its device's memory goes before the figure of the vendor's tool.
  if (device_memory_bytes && !event.metrics.contains("device_memory")) {
    event.metrics["device_memory"] = *device_memory_bytes;
  }
  return event;
}

StrategyEvent exit_event(const Trial& trial) {
  StrategyEvent event;
  event.kind = StrategyEvent::Kind::exited;
  event.trial = trial.id();
  event.outcome = static_cast<int>(*trial.record.outcome);
  event.peak_bytes = trial.record.peak_bytes.value_or(0);
  event.peak_above_bytes = trial.record.peak_above_bytes.value_or(0);
  event.allocator_retries = trial.record.allocator_retries;
  event.reason = trial.record.reason;
  event.attempt = std::max(trial.record.attempt, 1u);
  if (trial.end) {
    event.exit_code = trial.end->exit_code;
    event.term_signal = trial.end->term_signal;
  }
  return event;
}

}  // namespace dsat::host
