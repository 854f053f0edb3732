// Bytes of parameters, gradients and optimizer states on one device, by ZeRO stage, precision and optimizer, with the
// shares that the stage and offloading take away.
#include "dsat/cost/model_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace dsat::cost {
namespace {

double element_bytes(Precision precision) { return precision == Precision::fp32 ? 4 : 2; }

// fp32 values that the optimizer keeps for each parameter, besides a master copy of it.
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

// Bytes for each trainable parameter. In 16 bit there is a master copy in fp32 as well.
double optimizer_bytes(const Setup& setup) {
  const double master = setup.precision == Precision::fp32 ? 0 : 4;
  return master + 4 * optimizer_values(setup.optimizer);
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
        fmt::format("trainable_num_params ({:f}) is above num_params ({:f}); give the count of those that are trained",
                    size.trainable_num_params, size.num_params));
  }
  if (setup.stage < 0 || setup.stage > 3) {
    throw Error(fmt::format("ZeRO stage {} does not exist; stages are 0 to 3", setup.stage));
  }
  if (setup.data_parallel_size < 1 || setup.tensor_parallel_size < 1 || setup.pipeline_stages < 1) {
    throw Error("data-, tensor- and pipeline-parallel sizes must be at least 1");
  }
  const double tensor = static_cast<double>(setup.tensor_parallel_size);
  const double model = tensor * static_cast<double>(setup.pipeline_stages);
  return {size.num_params / model, size.trainable_num_params / model, size.largest_layer_params / tensor};
}

// Gradients are copied into one flat bucket and reduced from there; with overlap a second one fills meanwhile.
double reduce_bucket_bytes(const Share& share, const Setup& setup) {
  // A layer's gradients arrive together, so an engine that goes by layers makes room for the largest.
  const double wanted = std::max(setup.reduce_bucket_elements, share.largest_layer);
  return std::min(wanted, share.trainable) * element_bytes(setup.accumulation_dtype) * (setup.overlap_comm ? 2 : 1);
}

}  // namespace

double model_state_bytes(const ModelSize& size, const Setup& setup) {
  const Share share = share_of(size, setup);
  const double ranks = static_cast<double>(setup.data_parallel_size);
  const bool offloaded = setup.optimizer_device == Device::host;

  double params = share.params * element_bytes(setup.precision);
  if (setup.stage == 3) params = setup.parameter_device == Device::host ? 0 : params / ranks;

  // With the optimizer offloaded, partitioned gradients go to the host as they are reduced.
  double gradients = share.trainable * element_bytes(setup.accumulation_dtype);
  if (setup.stage >= 2) gradients = offloaded ? 0 : gradients / ranks;

  double optimizer = offloaded ? 0 : share.trainable * optimizer_bytes(setup);
  if (setup.stage >= 1) optimizer /= ranks;

  return params + gradients + optimizer;
}

double buffer_bytes(const ModelSize& size, const Setup& setup) {
  const Share share = share_of(size, setup);
  if (setup.stage < 2) return 0;  // gradients stay where they are; what reducing them takes comes after the peak
  double bytes = reduce_bucket_bytes(share, setup);
  if (setup.stage == 3) {
    // Whole parameters at a time: an engine that tells gathers layer by layer; DeepSpeed fetches ahead of use until its
    // prefetch bucket is full.
    const double live = share.largest_layer > 0 ? share.largest_layer : setup.prefetch_bucket_elements;
    bytes += std::min(live, share.params) * element_bytes(setup.precision);
  }
  return bytes;
}

double optional_buffer_bytes(const ModelSize& size, const Setup& setup) {
  const Share share = share_of(size, setup);
  if (setup.stage == 0 || setup.stage == 3 || setup.data_parallel_size == 1) return 0;
  const double gathered = std::min(setup.allgather_bucket_elements, share.params) * element_bytes(setup.precision);
  return gathered + (setup.stage == 1 ? reduce_bucket_bytes(share, setup) : 0);
}

double transformer_activation_bytes_per_sample(const TransformerShape& shape, Precision precision) {
  for (const double value : {shape.layers, shape.hidden, shape.heads, shape.sequence}) {
    if (!std::isfinite(value) || value <= 0) throw Error("layers, hidden, heads and sequence must all be above 0");
  }
  const double tokens = shape.sequence * shape.hidden;
  double layer = 2 * tokens;  // the layer's input only: full checkpointing
  if (shape.checkpointing != Checkpointing::full) {
    layer = 34 * tokens;
    // The attention matrix: never stored by FlashAttention, recomputed by selective checkpointing.
    const bool stored = !shape.flash_attention && shape.checkpointing == Checkpointing::none;
    if (stored) layer += 5 * shape.heads * shape.sequence * shape.sequence;
  }
  return shape.layers * layer * (precision == Precision::fp32 ? 2 : 1);
}

}  // namespace dsat::cost
