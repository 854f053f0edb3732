// Fits the model to every trial that fitted or ran out of memory, and asks it for single configurations.
// What the cost library throws means here that there is no estimate.
#include "facts/memory.h"

#include <exception>

namespace dsat::host {

std::optional<cost::MemoryFit> memory_fit(const MemoryKnowledge& knowledge, const std::vector<Trial>& trials) {
  if (!knowledge.profile.is_object()) return std::nullopt;
  try {
    cost::Inputs inputs = cost::inputs_from_profile(knowledge.profile);
    if (knowledge.device_memory_bytes) {
      inputs.device_memory_bytes = static_cast<double>(*knowledge.device_memory_bytes);
    }
    std::vector<cost::Observation> observations;
    for (const Trial& trial : trials) {
      const TrialRecord& record = trial.record;
      const bool fitted = record.outcome == Outcome::completed;
      if ((!fitted && record.outcome != Outcome::out_of_memory) || trial.model_info || record.duplicate_of) continue;
      cost::Observation seen{cost::setup_from_config(record.config, knowledge.data_parallel_size), !fitted, {}};
      if (fitted && record.peak_bytes) seen.peak_bytes = static_cast<double>(*record.peak_bytes);
      observations.push_back(seen);
    }
    return cost::fit_memory(inputs, observations);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<cost::Interval> estimated_peak(const std::optional<cost::MemoryFit>& fit, const Json& config,
                                             int64_t data_parallel_size) {
  if (!fit) return std::nullopt;
  try {
    return cost::predict_peak(*fit, cost::setup_from_config(config, data_parallel_size));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<cost::Interval> estimated_ceiling(const std::optional<cost::MemoryFit>& fit, const Json& config,
                                                int64_t data_parallel_size) {
  if (!fit || !fit->inputs.device_memory_bytes) return std::nullopt;
  try {
    return cost::max_micro_batch(*fit, cost::setup_from_config(config, data_parallel_size));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace dsat::host
