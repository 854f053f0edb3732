// The part of a configuration that decides a trial's memory.
#ifndef DSAT_COST_SETUP_H_
#define DSAT_COST_SETUP_H_

#include <cstdint>
#include <limits>
#include <string>

#include "dsat/cost/engine.h"
#include "dsat/error.h"

namespace dsat::cost {

enum class Precision { fp32, fp16, bf16 };
enum class Optimizer { adam, sgd, sgd_momentum };
enum class Device { accelerator, host };  // where a state lies; host: offloaded to cpu or nvme

struct Setup {
  int stage = 0;  // ZeRO
  Precision precision = Precision::fp32;
  Precision accumulation_dtype = Precision::fp32;  // data_types.grad_accum_dtype; default: the precision
  Optimizer optimizer = Optimizer::adam;
  bool half_master_copy = false, half_states = false;  // the optimizer's, in bf16 in place of fp32
  Device optimizer_device = Device::accelerator;
  Device parameter_device = Device::accelerator;
  double offload_ratio = 1;            // share of the optimizer's sub-groups that is offloaded; stage 3 only
  double sub_group_elements = 1e9;     // elements of a sub-group of a rank; used with a ratio below 1
  int64_t data_parallel_size = 1;      // ranks that share the states, sequence_parallel_size included
  int64_t hierarchical_partition = 1;  // above 1, at stage 3: ranks that share a second copy of the parameters
  int64_t tensor_parallel_size = 1;
  int64_t pipeline_stages = 1;
  bool activation_checkpointing = false;
  double reduce_bucket_elements = 5e8;  // DeepSpeed's defaults; a layer-by-layer engine may have 0: one layer
  double allgather_bucket_elements = 5e8;
  double prefetch_bucket_elements = 5e7;
  double max_reuse_distance_elements = 1e9;
  // The next three are read for a layer-by-layer engine only; DeepSpeed bounds other things by them.
  double max_live_elements = std::numeric_limits<double>::infinity();
  double persistence_threshold_elements = 0;  // a parameter of at most this size stays whole at stage 3
  double max_persistent_elements = std::numeric_limits<double>::infinity();  // of all such parameters together
  bool overlap_comm = false;
  bool contiguous_gradients = true;
  // Values of keys that no formula reads but that may change memory; written by the searcher. Bounds hold only between
  // setups with equal values.
  std::string unread{};
  int64_t micro_batch = 1;
};

// Reads a merged configuration. Absent keys take the defaults of `engine` (ModelSize::engine()). A configuration with a
// tuned world (dsat/config/world.h) has its own size in place of `data_parallel_size`. Throws dsat::Error on a wrong
// type.
Setup setup_from_config(const Json& config, int64_t data_parallel_size, Engine engine = Engine::deepspeed);

}  // namespace dsat::cost

#endif  // DSAT_COST_SETUP_H_
