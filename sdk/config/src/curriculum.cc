// Raises the least difficulty of each schedule to its largest, where DeepSpeed's scheduler then starts. max_difficulty
// stays as it is, because a percentile is a share of it. random-LTD follows the same rule.
#include "dsat/config/curriculum.h"

#include <algorithm>

#include "dsat/config/json.h"

namespace dsat::config {
namespace {

bool is_on(const Json& config, const char* key) {
  const Json* value = find(config, key);
  return value != nullptr && *value == true;
}

// The largest difficulty that is reached. A list of difficulties ends at the first one that reaches the maximum.
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

bool raise_curricula(Json& efficiency) {
  if (!is_on(efficiency, "data_sampling.enabled") || !is_on(efficiency, "data_sampling.curriculum_learning.enabled")) {
    return false;
  }
  Json& metrics = efficiency["data_sampling"]["curriculum_learning"]["curriculum_metrics"];
  bool any = false;
  if (metrics.is_object()) {
    for (Json& schedule : metrics) any |= raise(schedule);
  }
  return any;
}

// Sends all tokens through every layer from the first step on, as in the last steps.
bool keep_all_tokens(Json& efficiency) {
  if (!is_on(efficiency, "data_routing.enabled") || !is_on(efficiency, "data_routing.random_ltd.enabled")) return false;
  Json& schedule = efficiency["data_routing"]["random_ltd"]["random_ltd_schedule"];
  const Json* most = schedule.is_object() ? find(schedule, "max_value") : nullptr;
  if (most == nullptr || !most->is_number()) return false;
  schedule["min_value"] = Json(*most);
  return true;
}

}  // namespace

bool train_at_full_difficulty(Json& config) {
  bool any = is_on(config, "curriculum_learning.enabled") && raise(config["curriculum_learning"]);
  if (!is_on(config, "data_efficiency.enabled")) return any;
  any |= raise_curricula(config["data_efficiency"]);
  any |= keep_all_tokens(config["data_efficiency"]);
  return any;
}

}  // namespace dsat::config
