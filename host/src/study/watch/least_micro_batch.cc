// Looks for the smallest micro batch that worked, then for failures below it.
#include "study/watch/least_micro_batch.h"

#include <algorithm>

#include "dsat/config/batch.h"

namespace dsat::host {

std::optional<LeastMicroBatch> least_micro_batch(const std::vector<Trial>& trials) {
  const auto micro_batch = [](const Trial& trial) {
    return trial.record.config.value(config::kMicroBatchKey, int64_t{0});
  };
  std::optional<int64_t> works;
  for (const Trial& trial : trials) {
    if (trial.phase != Phase::profiler || trial.record.outcome != Outcome::completed) continue;
    works = std::min(works.value_or(micro_batch(trial)), micro_batch(trial));
  }
  std::optional<LeastMicroBatch> least;
  for (const Trial& trial : trials) {
    if (trial.phase != Phase::profiler || trial.record.outcome != Outcome::failed) continue;
    const int64_t fails = micro_batch(trial);
    if (!works || fails >= *works || (least && fails <= least->fails)) continue;
    least = LeastMicroBatch{*works, fails, trial.record.reason};
  }
  return least;
}

}  // namespace dsat::host
