// Raises each schedule's least difficulty to its largest: DeepSpeed's scheduler starts there, and asks the schedule
// only below max_difficulty, which stays as it is (a percentile is a share of it).
#include "dsat/config/curriculum.h"

#include <algorithm>

#include "dsat/config/json.h"

namespace dsat::config {
namespace {

bool is_on(const Json& config, const char* key) {
  const Json* value = find(config, key);
  return value != nullptr && *value == true;
}

// The largest that is reached: a list of difficulties ends where it reaches the maximum.
Json full_difficulty(const Json& most, const Json* list) {
  if (list == nullptr || !list->is_array() || list->empty()) return most;
  const auto end = std::find_if(list->begin(), list->end(), [&](const Json& one) { return one >= most; });
  return *std::max_element(list->begin(), end == list->end() ? end : end + 1);
}

bool raise(Json& schedule) {
  const Json* most = schedule.is_object() ? find(schedule, "max_difficulty") : nullptr;
  if (most == nullptr || !most->is_number()) return false;
  const Json* type = find(schedule, "schedule_type");
  const bool is_list = type != nullptr && *type == "fixed_discrete";
  const Json* list = is_list ? find(schedule, "schedule_config.difficulty") : nullptr;
  const Json full = full_difficulty(*most, list);
  if (list != nullptr) set(schedule, "schedule_config.difficulty", Json::array_t(list->size(), full));
  schedule["min_difficulty"] = full;
  return true;
}

}  // namespace

bool train_at_full_difficulty(Json& config) {
  bool any = is_on(config, "curriculum_learning.enabled") && raise(config["curriculum_learning"]);
  if (!is_on(config, "data_efficiency.enabled") || !is_on(config, "data_efficiency.data_sampling.enabled") ||
      !is_on(config, "data_efficiency.data_sampling.curriculum_learning.enabled")) {
    return any;
  }
  Json& metrics = config["data_efficiency"]["data_sampling"]["curriculum_learning"]["curriculum_metrics"];
  if (!metrics.is_object()) return any;
  for (Json& schedule : metrics) any |= raise(schedule);
  return any;
}

}  // namespace dsat::config
