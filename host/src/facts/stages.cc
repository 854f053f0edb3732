// Counts the trials of each ZeRO stage and asks the memory model for its ceiling. A stage is represented by its best
// configuration, or else by the last one tried.
#include <algorithm>
#include <map>

#include "facts/sections.h"
#include "record/measured.h"

namespace dsat::host {
namespace {

void count(StageFacts& stage, const TrialRecord& record, const TrialFacts& trial) {
  ++stage.trials;
  if (!record.outcome || record.outcome == Outcome::stopped) return;
  const bool fitted = record.outcome == Outcome::completed;
  const bool too_large = record.outcome == Outcome::out_of_memory;
  if (too_large) ++stage.out_of_memory;
  if (!fitted && !too_large) ++stage.failed;
  if (!trial.micro_batch) return;
  const int64_t size = *trial.micro_batch;
  if (fitted) stage.largest_that_fitted = std::max(stage.largest_that_fitted.value_or(size), size);
  if (too_large) stage.smallest_out_of_memory = std::min(stage.smallest_out_of_memory.value_or(size), size);
}

}  // namespace

std::vector<StageFacts> stage_facts(const StudyFacts& facts, const std::vector<Trial>& trials,
                                    const MemoryEstimates& estimates) {
  std::map<int, StageFacts> stages;
  std::map<int, uint64_t> shown;  // the trial that represents the stage
  for (const Json& stage : facts.record.study.value("zero_stages", Json::array())) {
    if (stage.is_number_integer()) stages[stage.get<int>()];
  }
  for (const TrialRecord& record : facts.record.trials) {
    const TrialFacts& trial = facts.trials[record.id];
    if (!record.started() || trial.model_info) continue;
    count(stages[trial.stage], record, trial);
    shown[trial.stage] = record.id;
  }
  for (const MeasuredConfiguration& measured : measured_configurations(trials, facts.metric)) {
    StageFacts& stage = stages[facts.trials[measured.trial].stage];
    const bool better = !stage.best_value ||
                        (facts.maximise ? measured.metric > *stage.best_value : measured.metric < *stage.best_value);
    if (!better) continue;
    stage.best_value = measured.metric;
    stage.best_trial = measured.trial;
  }
  std::vector<StageFacts> list;
  for (auto& [number, stage] : stages) {
    stage.stage = number;
    const int of_stage = number;  // in C++17 a lambda cannot capture a structured binding
    const std::optional<uint64_t> trial = stage.best_trial ? stage.best_trial : [&]() -> std::optional<uint64_t> {
      const auto at = shown.find(of_stage);
      return at == shown.end() ? std::nullopt : std::optional<uint64_t>(at->second);
    }();
    if (trial) {
      const auto ceiling = estimates.ceiling(facts.record.trials[*trial].config);
      if (ceiling) stage.ceiling = Estimate{ceiling->value, ceiling->low, ceiling->high};
    }
    list.push_back(stage);
  }
  return list;
}

}  // namespace dsat::host
