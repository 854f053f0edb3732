// The memory of a model before any trial: the answer of `dsat-host estimate`.
//
// Purpose: model states by the ZeRO formula and, for a transformer of known shape, activations by the published one.
//   dsat/cost/memory.h learns from trials; here nothing is fitted.
// Threading: pure functions. Units: bytes per device. Errors: dsat::Error that names the command-line option.
#ifndef DSAT_COST_ESTIMATE_H_
#define DSAT_COST_ESTIMATE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "dsat/cost/model_states.h"
#include "dsat/cost/setup.h"

namespace dsat::cost {

struct EstimateRequest {
  double num_params = 0;
  std::optional<double> trainable_params;  // default: all of them
  int64_t world_size = 1;                  // devices, all data-parallel
  Precision precision = Precision::fp16;
  Optimizer optimizer = Optimizer::adam;
  std::optional<TransformerShape> transformer;  // --layers --hidden --heads --seq: all four or none
  std::optional<double> device_memory_bytes;
  // Applied at the stages where DeepSpeed allows it: the optimizer at 2 and 3, parameters at 3.
  bool offload_optimizer = false;
  bool offload_param = false;
};

// {"stages": [{"stage", "model_state_bytes", "activation_bytes_per_sample" | null, "max_micro_batch" | null}]}, stages
// 0 to 3. Without a transformer, activations and micro batch are null; without device memory, the micro batch is. The
// micro batch counts model states, DeepSpeed's default buckets and activations. 0: not even one sample fits.
Json estimate(const EstimateRequest& request);

// "fp32", "fp16", "bf16"; "adam", "adamw", "sgd", "sgd-momentum"; "none", "selective", "full". An Error lists the
// choices.
Precision parse_precision(std::string_view text);
Optimizer parse_optimizer(std::string_view text);
Checkpointing parse_checkpointing(std::string_view text);

}  // namespace dsat::cost

#endif  // DSAT_COST_ESTIMATE_H_
