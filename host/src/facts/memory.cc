// Fits the model to every trial that fitted or ran out of memory. An exception of the cost library means that there is
// no estimate.
#include "facts/memory.h"

#include <exception>

#include "command/hugging_face.h"

namespace dsat::host {

MemoryEstimates::MemoryEstimates(const MemoryKnowledge& knowledge, const std::vector<Trial>& trials)
    : data_parallel_size_(knowledge.data_parallel_size), precision_(knowledge.precision) {
  if (!knowledge.profile.is_object()) return;
  try {
    cost::Inputs inputs = cost::inputs_from_profile(knowledge.profile);
    if (knowledge.device_memory_bytes) {
      inputs.device_memory_bytes = static_cast<double>(*knowledge.device_memory_bytes);
    }
    engine_ = inputs.size.engine();
    std::vector<cost::Observation> observations;
    for (const Trial& trial : trials) {
      const TrialRecord& record = trial.record;
      const bool fitted = record.outcome == Outcome::completed;
      const bool ran_out = record.outcome == Outcome::out_of_memory && !trial.lacked_host_memory();
      if ((!fitted && !ran_out) || trial.model_info || record.duplicate_of) continue;
      cost::Observation seen{setup_of(record.config), !fitted, {}};
      if (fitted && record.peak_bytes) seen.peak_bytes = static_cast<double>(*record.peak_bytes);
      if (ran_out && record.peak_above_bytes) seen.peak_above_bytes = static_cast<double>(*record.peak_above_bytes);
      seen.allocator_retries = static_cast<int64_t>(record.allocator_retries);
      observations.push_back(seen);
    }
    fit_ = cost::fit_memory(inputs, observations);
  } catch (const std::exception&) {
    fit_.reset();
  }
}

cost::Setup MemoryEstimates::setup_of(const Json& config) const {
  return cost::setup_from_config(with_precision(config, precision_), data_parallel_size_, engine_);
}

std::optional<cost::Interval> MemoryEstimates::peak(const Json& config) const {
  if (!fit_) return std::nullopt;
  try {
    return cost::predict_peak(*fit_, setup_of(config));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<cost::Interval> MemoryEstimates::ceiling(const Json& config) const {
  if (!fit_ || !fit_->inputs.device_memory_bytes) return std::nullopt;
  try {
    return cost::micro_batch_ceiling(*fit_, setup_of(config));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace dsat::host
