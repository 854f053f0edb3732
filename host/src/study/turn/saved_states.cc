// Asks the strategy for its state. The new state replaces the last one, unless that is far enough from the others.
#include "study/turn/saved_states.h"

#include <fmt/format.h>

namespace dsat::host {

void SavedStates::save(const StrategyRun& run) {
  last_attempt_ = last_event_;
  const bool has_state = run.strategy && run.started && !run.finish && run.strategy->can_save();
  if (!journal_.keeps() || !has_state) return;
  std::string state;
  try {
    state = run.strategy->save();
  } catch (const Error& error) {
    observer_.on_log(Observer::Severity::warning,
                     fmt::format("{}; a resume will replay the events instead", error.what()));
    return;
  }
  if (to_replace_) journal_.remove_state(run.phase, *to_replace_);
  journal_.put_state(run.phase, last_event_, state);
  const bool stays = last_event_ - last_kept_ >= last_event_ / kKeptStateShare;
  to_replace_ = stays ? std::nullopt : std::optional<uint64_t>(last_event_);
  if (stays) last_kept_ = last_event_;
}

}  // namespace dsat::host
