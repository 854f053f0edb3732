// One table, and one key whose default depends on the stage.
#include "dsat/config/defaults.h"

#include <map>

namespace dsat::config {

Json deepspeed_default(const std::string& key, int stage) {
  static const std::map<std::string, Json> kDefaults{{"zero_optimization.stage", 0},
                                                     {"zero_optimization.reduce_bucket_size", 500000000},
                                                     {"zero_optimization.allgather_bucket_size", 500000000},
                                                     {"zero_optimization.stage3_prefetch_bucket_size", 50000000},
                                                     {"zero_optimization.stage3_param_persistence_threshold", 100000},
                                                     {"zero_optimization.stage3_max_live_parameters", 1000000000},
                                                     {"zero_optimization.stage3_max_reuse_distance", 1000000000},
                                                     {"zero_optimization.sub_group_size", 1000000000},
                                                     {"zero_optimization.reduce_scatter", true},
                                                     {"zero_optimization.contiguous_gradients", true},
                                                     {"zero_optimization.allgather_partitions", true},
                                                     {"zero_optimization.offload_optimizer.device", "none"},
                                                     {"zero_optimization.offload_param.device", "none"}};
  if (key == "zero_optimization.overlap_comm") return stage == 3;
  const auto it = kDefaults.find(key);
  return it == kDefaults.end() ? Json() : it->second;
}

}  // namespace dsat::config
