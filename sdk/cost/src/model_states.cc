// Bytes of parameters, gradients and optimizer states on one device, by ZeRO stage, precision, optimizer and
// offloading.
#include "dsat/cost/model_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace dsat::cost {
namespace {

double as_double(int64_t value) { return static_cast<double>(value); }
double element_bytes(Precision precision) { return precision == Precision::fp32 ? 4 : 2; }

// The values that the optimizer keeps for each parameter, besides a master copy.
double optimizer_values(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adam:
      return 2;
    case Optimizer::sgd_momentum:
      return 1;
    case Optimizer::sgd:
      return 0;
  }
  return 2;
}

// Bytes of the master copy for each trainable parameter. Precisions of 16 bit always need it.
double master_bytes(const Setup& setup, const EngineRules& rules) {
  const bool fp32 = setup.precision == Precision::fp32;
  if (fp32 && !(rules.master_copy_in_fp32 && setup.stage >= 1)) return 0;
  return setup.half_master_copy ? 2 : 4;
}

// Does DeepSpeed use its BF16_Optimizer? That one accumulates in a flat fp32 gradient of all parameters, beside the
// gradients of backward; it divides master copy and states even without ZeRO, and reduces without a bucket. (With a
// pipeline at stage 0 it can accumulate in bf16. Then the result is too high.)
bool has_flat_gradients(const Setup& setup, const EngineRules& rules) {
  if (!rules.flat_bf16_gradients || setup.precision != Precision::bf16 || setup.stage > 1) return false;
  const bool fp32 = setup.accumulation_dtype == Precision::fp32;
  if (setup.stage == 0) return fp32 || rules.flat_at_stage_0;
  return fp32 && setup.optimizer_device == Device::accelerator;
}

void check(double value, const char* name) {
  if (!std::isfinite(value) || value < 0) {
    throw Error(fmt::format("{} is {:f}; it must be a number that is not negative", name, value));
  }
}

// One device's share of the model before ZeRO divides anything.
struct Share {
  double params = 0, trainable = 0, largest_layer = 0;
};

Share share_of(const ModelSize& size, const Setup& setup) {
  check(size.num_params, "num_params");
  check(size.trainable_num_params, "trainable_num_params");
  check(size.largest_layer_params, "largest_layer_params");
  if (size.trainable_num_params > size.num_params) {
    throw Error(
        fmt::format("trainable_num_params ({:f}) is above num_params ({:f}); give the number of trained parameters",
                    size.trainable_num_params, size.num_params));
  }
  if (setup.stage < 0 || setup.stage > 3) {
    throw Error(fmt::format("ZeRO stage {} does not exist; stages are 0 to 3", setup.stage));
  }
  if (setup.data_parallel_size < 1 || setup.tensor_parallel_size < 1 || setup.pipeline_stages < 1) {
    throw Error("data-, tensor- and pipeline-parallel sizes must be at least 1");
  }
  const double tensor = as_double(setup.tensor_parallel_size);
  const double model = tensor * as_double(setup.pipeline_stages);
  return {size.num_params / model, size.trainable_num_params / model, size.largest_layer_params / tensor};
}

// Gradients are copied into a flat bucket and reduced there; with overlap a second bucket fills meanwhile. Without
// contiguous gradients they stay in place until a bucket is full.
double reduce_bucket_bytes(const Share& share, const Setup& setup, const EngineRules& rules) {
  // All gradients of a layer arrive together, so a layer-by-layer engine makes room for the largest layer.
  double elements = std::max(setup.reduce_bucket_elements, share.largest_layer);
  if (!rules.whole_bucket || !setup.contiguous_gradients) elements = std::min(elements, share.trainable);
  const bool two = setup.overlap_comm && !(rules.one_bucket_stage_3 && setup.stage == 3);
  return elements * element_bytes(rules.whole_bucket ? setup.precision : setup.accumulation_dtype) * (two ? 2 : 1);
}

// For a layer-by-layer engine: elements of the small parameters that stage 3 keeps whole on every rank. Between two
// size classes it takes the larger count, so an error is on the safe side.
double persistent_elements(const ModelSize& size, const Share& share, const Setup& setup) {
  const double threshold = setup.persistence_threshold_elements;
  if (threshold == 0 || !rules_of(size.engine()).gathers_by_layer) return 0;
  double small = size.trainable_num_params;
  for (size_t i = kSmallParameters.size(); i > 0 && threshold < size.largest_layer_params; --i) {
    if (kSmallParameters[i - 1].elements < threshold) break;
    small = size.small_params[i - 1];
  }
  const double part = size.trainable_num_params > 0 ? share.trainable / size.trainable_num_params : 0;
  return std::min({small * part, setup.max_persistent_elements, share.trainable});
}

// For a layer-by-layer engine: the current layer and, once a micro step has shown the order of layers, the prefetched
// ones (whole layers) and half the reuse distance, as explained below.
double live_elements(const Share& share, const Setup& setup, bool knows_the_next) {
  const double layer = share.largest_layer;
  if (!knows_the_next || layer == 0) return layer;
  const double ahead = std::ceil(setup.prefetch_bucket_elements / layer) * layer;
  const double live = layer + ahead + 0.5 * setup.max_reuse_distance_elements;
  return std::min(live, std::max(layer, setup.max_live_elements));
}

// Stage 3 keeps a parameter that is used again within the reuse distance. Between the forward and the backward of a
// layer lie twice the elements after it, so half the distance stays, and the prefetched elements.
double gathered_bytes(const ModelSize& size, const Share& share, const Setup& setup, bool knows_the_next) {
  double live = 0.5 * setup.max_reuse_distance_elements + setup.prefetch_bucket_elements, most = share.params;
  if (rules_of(size.engine()).gathers_by_layer) {
    live = live_elements(share, setup, knows_the_next);
    most = share.trainable - persistent_elements(size, share, setup);
  }
  return std::min(live, most) * element_bytes(setup.precision);
}

double parameter_bytes(const ModelSize& size, const Share& share, const Setup& setup) {
  const double element = element_bytes(setup.precision);
  if (setup.stage < 3) return share.params * element;
  const bool divides_frozen = !rules_of(size.engine()).gathers_by_layer;
  const double whole = (divides_frozen ? 0 : share.params - share.trainable) + persistent_elements(size, share, setup);
  if (setup.parameter_device == Device::host) return whole * element;
  const double divided = (divides_frozen ? share.params : share.trainable) * element;
  const double second = setup.hierarchical_partition > 1 ? divided / as_double(setup.hierarchical_partition) : 0;
  return divided / as_double(setup.data_parallel_size) + second + whole * element;
}

// The share of the optimizer that stays on the device. DeepSpeed offloads whole sub-groups and rounds their number
// down.
double kept_share(const Share& share, const Setup& setup) {
  if (setup.optimizer_device == Device::accelerator) return 1;
  const double own = share.trainable / as_double(setup.data_parallel_size);
  const double groups = std::max(1.0, std::ceil(own / std::max(1.0, setup.sub_group_elements)));
  return 1 - std::floor(setup.offload_ratio * groups) / groups;
}

// `knows_the_next`: a micro step has shown the order of layers.
double buffer_bytes(const ModelSize& size, const Setup& setup, bool knows_the_next) {
  const Share share = share_of(size, setup);
  const EngineRules& rules = rules_of(size.engine());
  // Without a bucket gradients stay in place. The memory of their reduction comes after the peak.
  if (setup.stage == 0 || (setup.stage == 1 && !rules.bucket_at_stage_1)) return 0;
  if (has_flat_gradients(setup, rules)) return 0;
  const double gathered = setup.stage == 3 ? gathered_bytes(size, share, setup, knows_the_next) : 0;
  return reduce_bucket_bytes(share, setup, rules) + gathered;
}

}  // namespace

double model_state_bytes(const ModelSize& size, const Setup& setup) {
  const Share share = share_of(size, setup);
  const EngineRules& rules = rules_of(size.engine());
  const double ranks = as_double(setup.data_parallel_size);
  const bool offloaded = setup.optimizer_device == Device::host;
  const bool flat = has_flat_gradients(setup, rules);

  // With an offloaded optimizer, partitioned gradients go to the host when they are reduced. Stage 1 keeps all of them.
  double gradients = share.trainable * (flat ? 4 + 2 : element_bytes(setup.accumulation_dtype));
  if (setup.stage >= 2) gradients = offloaded ? 0 : gradients / ranks;

  const double states = (setup.half_states ? 2 : 4) * optimizer_values(setup.optimizer);
  double optimizer = share.trainable * (master_bytes(setup, rules) + states) * kept_share(share, setup);
  if (setup.stage >= 1 || flat) optimizer /= ranks;

  return parameter_bytes(size, share, setup) + gradients + optimizer;
}

double buffer_bytes(const ModelSize& size, const Setup& setup) { return buffer_bytes(size, setup, true); }

double optional_buffer_bytes(const ModelSize& size, const Setup& setup) {
  const Share share = share_of(size, setup);
  const EngineRules& rules = rules_of(size.engine());
  if (setup.stage == 0 || setup.data_parallel_size == 1 || has_flat_gradients(setup, rules)) return 0;
  double bytes = 0;
  if (setup.stage == 1 && !rules.bucket_at_stage_1) bytes += reduce_bucket_bytes(share, setup, rules);
  if (rules.whole_bucket) {
    bytes += std::min(setup.reduce_bucket_elements, share.trainable) * element_bytes(setup.precision);
  }
  if (rules.allgather_copy && setup.stage < 3) {
    bytes += std::min(setup.allgather_bucket_elements, share.params) * element_bytes(setup.precision);
  }
  return bytes;
}

double forward_bytes(const ModelSize& size, const Setup& setup) {
  const Share share = share_of(size, setup);
  const EngineRules& rules = rules_of(size.engine());
  if (rules.gathers_by_layer) {
    return model_state_bytes(size, setup) + buffer_bytes(size, setup, /*knows_the_next=*/false);
  }
  const double ranks = as_double(setup.data_parallel_size);
  const bool third = setup.stage == 3, flat = has_flat_gradients(setup, rules);
  double bytes = parameter_bytes(size, share, setup);
  const double master = share.trainable * master_bytes(setup, rules) * kept_share(share, setup);
  bytes += setup.stage >= 1 || flat ? master / ranks : master;
  if (flat) bytes += share.trainable * 4;
  if (third) {
    bytes += share.trainable * element_bytes(setup.accumulation_dtype) / ranks + buffer_bytes(size, setup);
  }
  return bytes;
}

double transformer_activation_bytes_per_sample(const TransformerShape& shape, Precision precision) {
  for (const double value : {shape.layers, shape.hidden, shape.heads, shape.sequence}) {
    if (!std::isfinite(value) || value <= 0) throw Error("layers, hidden, heads and sequence must all be above 0");
  }
  const double tokens = shape.sequence * shape.hidden;
  double layer = 34 * tokens;
  // FlashAttention never stores the attention matrix, and selective checkpointing recomputes it.
  const bool stored = !shape.flash_attention && shape.checkpointing != Checkpointing::selective;
  if (stored) layer += 5 * shape.heads * shape.sequence * shape.sequence;
  // With full checkpointing the inputs of all layers stay, and backward holds one whole layer at a time.
  const bool full = shape.checkpointing == Checkpointing::full;
  const double all = full ? shape.layers * 2 * tokens + layer : shape.layers * layer;
  return all * (precision == Precision::fp32 ? 2 : 1);
}

}  // namespace dsat::cost
