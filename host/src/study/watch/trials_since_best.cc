// One pass over the trials in the order of their ids: a better one starts the count anew.
#include "study/watch/trials_since_best.h"

namespace dsat::host {

int trials_since_best(const std::vector<Trial>& trials, const std::string& metric, bool maximise, uint64_t first) {
  const Json* best = nullptr;
  int since = 0;
  for (const Trial& trial : trials) {
    const TrialRecord& record = trial.record;
    if (trial.state != TrialState::delivered || trial.model_info || !trial.can_answer()) continue;
    const auto value = record.metrics.is_object() ? record.metrics.find(metric) : record.metrics.end();
    const bool measured = record.outcome == Outcome::completed && value != record.metrics.end() && value->is_number();
    if (measured && (best == nullptr || (maximise ? *value > *best : *value < *best))) {
      best = &*value;
      since = 0;
    } else if (best != nullptr && trial.phase == Phase::searcher && trial.id() >= first) {
      ++since;
    }
  }
  return since;
}

}  // namespace dsat::host
