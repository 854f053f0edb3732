// The keys of DeepSpeed's configuration by their effect. Unlisted keys are unknown.
#include "cost/posterior/memory_keys.h"

#include <algorithm>
#include <initializer_list>

namespace dsat::cost {
namespace {

bool is_one_of(const std::string& key, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return key == std::string("zero_optimization.") + name; });
}

}  // namespace

MemoryEffect memory_effect(const std::string& key) {
  if (is_one_of(key,
                {"reduce_bucket_size", "allgather_bucket_size", "stage3_prefetch_bucket_size",
                 "stage3_max_reuse_distance", "overlap_comm", "offload_optimizer.device", "offload_param.device"})) {
    return MemoryEffect::read;
  }
  if (is_one_of(key, {"reduce_scatter", "allgather_partitions", "round_robin_gradients"})) return MemoryEffect::none;
  if (is_one_of(key, {"stage3_max_live_parameters", "stage3_param_persistence_threshold",
                      "stage3_model_persistence_threshold", "sub_group_size"})) {
    return MemoryEffect::takes;
  }
  return MemoryEffect::unknown;
}

}  // namespace dsat::cost
