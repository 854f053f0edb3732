// Compares the memory that a completed trial needed with the memory that the user gave. If no peak was measured, the
// model's states count.
#include "study/watch/memory_doubt.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "command/hugging_face.h"
#include "dsat/base/units.h"
#include "dsat/config/json_numbers.h"
#include "dsat/cost/model_states.h"

namespace dsat::host {
namespace {

// The measured peak of the trial, else the states of its model; 0: neither is known.
double least_bytes(const Trial& trial, const Plan& plan, const Json& profile) {
  if (trial.record.peak_bytes) return static_cast<double>(*trial.record.peak_bytes);
  const double params = config::number_at(profile, "num_params").value_or(0);
  if (trial.model_info || params <= 0) return 0;
  const double trainable = config::number_at(profile, "trainable_num_params").value_or(params);
  try {
    const Json config = with_precision(trial.record.config, plan.filled_in_precision());
    return cost::model_state_bytes({params, trainable, 0}, cost::setup_from_config(config, plan.data_parallel_size));
  } catch (const std::exception&) {  // a configuration that the model cannot read is no reason for doubt
    return 0;
  }
}

}  // namespace

std::optional<std::string> MemoryDoubt::add(const Trial& trial, const Plan& plan, const Json& profile) {
  const bool completed = trial.record.outcome == Outcome::completed && !trial.record.duplicate_of;
  if (!plan.device_memory_bytes || is_reported_ || !completed) return std::nullopt;
  const double needed = least_bytes(trial, plan, profile);
  const auto given = static_cast<double>(*plan.device_memory_bytes);
  if (needed <= given) return std::nullopt;
  is_reported_ = true;
  return fmt::format("trials ran that need more than --device-memory {}: is it right? (trial {}: {})",
                     format_size(given), trial.id(), format_size(needed));
}

}  // namespace dsat::host
