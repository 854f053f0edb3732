// Setups compared by everything that decides memory, except the micro batch.
#ifndef DSAT_COST_POSTERIOR_SETUPS_H_
#define DSAT_COST_POSTERIOR_SETUPS_H_

#include <tuple>

#include "dsat/cost/setup.h"

namespace dsat::cost {

inline auto key_of(const Setup& s) {
  return std::tie(
      s.stage, s.precision, s.accumulation_dtype, s.optimizer, s.half_master_copy, s.half_states, s.optimizer_device,
      s.parameter_device, s.offload_ratio, s.sub_group_elements, s.hierarchical_partition, s.data_parallel_size,
      s.tensor_parallel_size, s.pipeline_stages, s.activation_checkpointing, s.reduce_bucket_elements,
      s.allgather_bucket_elements, s.prefetch_bucket_elements, s.max_reuse_distance_elements, s.max_live_elements,
      s.persistence_threshold_elements, s.max_persistent_elements, s.overlap_comm, s.contiguous_gradients, s.unread);
}
struct OrderOfSetups {  // ignores the micro batch
  bool operator()(const Setup& a, const Setup& b) const { return key_of(a) < key_of(b); }
};
inline bool differ_in_micro_batch_only(const Setup& a, const Setup& b) { return key_of(a) == key_of(b); }

}  // namespace dsat::cost

#endif  // DSAT_COST_POSTERIOR_SETUPS_H_
