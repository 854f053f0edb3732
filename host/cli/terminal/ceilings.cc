// Keeps two micro batches for each stage: the largest that trained and the smallest that did not fit. Keys such as
// offload move the ceiling, too, so a trial that ran out of memory below a micro batch that trained does not count.
#include "terminal/ceilings.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsat/config/json_numbers.h"
#include "terminal/format.h"

namespace dsat::cli {

void Ceilings::take_profile(const Json& profile) {
  const auto stages = profile.is_object() ? profile.find("stages") : profile.end();
  if (!profile.is_object() || stages == profile.end() || !stages->is_array()) return;
  // The profile cannot estimate a ceiling unless it knows the device's memory.
  const bool memory_known = profile.contains("device_memory_bytes") && profile["device_memory_bytes"].is_number();
  for (const Json& stage : *stages) {
    if (!stage.is_object() || !stage.contains("stage") || !stage["stage"].is_number_integer()) continue;
    Stage& known = stages_[stage["stage"].get<int64_t>()];
    const auto ceiling = stage.find("max_micro_batch");
    if (!memory_known || ceiling == stage.end() || !ceiling->is_object()) continue;
    const auto value = config::number_at(*ceiling, "value"), low = config::number_at(*ceiling, "low");
    constexpr double kTooFar = 64;  // an interval that wide holds no estimate
    if (value && *value >= 1 && *value <= kTooFar * std::max(1.0, low.value_or(*value))) known.estimate = value;
  }
}

void Ceilings::take_trial(const host::TrialRecord& trial) {
  const auto stage = zero_stage_of(trial.config), micro_batch = micro_batch_of(trial.config);
  if (!stage || !micro_batch) return;
  Stage& known = stages_[*stage];
  if (trial.outcome == host::Outcome::completed) {
    known.ran = std::max(*micro_batch, known.ran.value_or(0));
  } else if (trial.outcome == host::Outcome::out_of_memory) {
    known.out_of_memory = std::min(*micro_batch, known.out_of_memory.value_or(*micro_batch));
  }
}

std::string Ceilings::text_of(const Stage& stage) {
  const int64_t ran = stage.ran.value_or(0);
  if (stage.out_of_memory && *stage.out_of_memory > ran) {
    const int64_t most = *stage.out_of_memory - 1;
    if (most == 0) return "nothing fits";
    if (most == ran) return fmt::format("{}", ran);
    return ran > 0 ? fmt::format("{} to {}", ran, most) : fmt::format("{} at most", most);
  }
  if (stage.estimate && *stage.estimate >= static_cast<double>(ran) + 1) {
    return fmt::format("about {:.0f}", *stage.estimate);
  }
  return ran > 0 ? fmt::format("{} or more", ran) : "unknown";
}

std::string Ceilings::text() const {
  std::string text;
  for (const auto& [number, stage] : stages_) {
    text += fmt::format("{}stage {}: {}", text.empty() ? "" : ", ", number, text_of(stage));
  }
  return text;
}

}  // namespace dsat::cli
