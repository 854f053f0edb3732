// The peak is in the backward pass or in the optimizer step. It is model states, activations and buffers, plus the
// allocator's loss.
#include <algorithm>
#include <cmath>

#include "sim/step.h"

namespace dsat::host::sim {
namespace {

double as_double(int64_t value) { return static_cast<double>(value); }
double element_bytes(const cost::Setup& setup) { return setup.precision == cost::Precision::fp32 ? 4 : 2; }

// The caching allocator uses blocks of 2 MiB.
double in_blocks(double bytes) {
  constexpr double kBlock = 2.0 * 1024 * 1024;
  return std::ceil(bytes / kBlock) * kBlock;
}

cost::ModelSize size_of(const Scenario& s) { return {s.model.num_params, s.model.num_params, 0}; }

// Korthikanti et al., equation 2, plus the output layer: logits in 16 bits and their softmax in 32 bits.
double activation_bytes(const Scenario& s, const Run& run, bool training) {
  const cost::Setup& setup = run.setup;
  cost::TransformerShape shape = s.model.shape;
  shape.checkpointing = run.checkpointing;
  const double model_parallel = as_double(setup.tensor_parallel_size * setup.pipeline_stages);
  // A pipeline holds the activations of as many micro batches as it has stages.
  const double in_flight = std::min(as_double(setup.pipeline_stages), run.accumulation);
  // The layer that is recomputed has all its activations; only one pipeline stage has this layer at a time.
  cost::TransformerShape one = s.model.shape;
  one.layers = 1;
  one.checkpointing = cost::Checkpointing::none;
  const double at_work = cost::transformer_activation_bytes_per_sample(one, setup.precision);
  double kept = cost::transformer_activation_bytes_per_sample(shape, setup.precision);
  if (run.checkpointing == cost::Checkpointing::full) kept -= at_work;
  double bytes = kept / model_parallel * in_flight;
  const bool recomputes = run.checkpointing != cost::Checkpointing::none && training;
  if (recomputes) bytes += at_work / as_double(setup.tensor_parallel_size);
  bytes += s.model.shape.sequence * s.model.vocab * (training ? 6 : 2) / as_double(setup.tensor_parallel_size);
  return in_blocks(bytes * as_double(setup.micro_batch));
}

// Each buffer is a whole bucket, whatever the model's size; below stage 3 there are two with overlap. Without
// contiguous gradients, gradients wait in place: half a bucket on average. docs/real-deepspeed.md has the table.
double reduce_buffer_bytes(const Run& run, double params) {
  const cost::Setup& setup = run.setup;
  if (setup.stage == 0) return 0;
  const double element = element_bytes(setup);
  if (!run.contiguous_gradients) {
    return 0.5 * std::min(setup.reduce_bucket_elements, params) * element;
  }
  return setup.reduce_bucket_elements * element * (setup.overlap_comm && setup.stage < 3 ? 2 : 1);
}

// Stage 3 holds the current layer, prefetched parameters, small parameters, and parameters kept for the backward pass.
double live_parameter_bytes(const Scenario& s, const Run& run, double params) {
  const cost::Setup& setup = run.setup;
  if (setup.stage != 3) return 0;
  const double layer = s.model.layer_params() / as_double(setup.tensor_parallel_size);
  // Between a layer's forward and backward pass, twice the elements behind it are used.
  const double reused = 0.5 * run.max_reuse_distance;
  const double live = layer + std::max(reused, std::min(setup.prefetch_bucket_elements, run.max_live));
  // Biases and norms, 13 h per layer, are not partitioned if they are small enough.
  const double small =
      run.persistence_threshold >= s.model.shape.hidden ? s.model.shape.layers * 13 * s.model.shape.hidden : 0;
  return (std::min(live, params) + small) * element_bytes(setup);
}

// After the backward pass the activations are freed, and the optimizer has temporaries. Parameters are gathered in
// place.
double step_phase_bytes(const Run& run, double params) {
  const cost::Setup& setup = run.setup;
  const double ranks = as_double(setup.data_parallel_size);
  if (setup.optimizer_device == cost::Device::host) return 0;
  if (setup.stage == 0 && setup.precision == cost::Precision::bf16) return 0;  // the gradients are fp32 already
  return 4 * (setup.stage >= 1 ? params / ranks : params);
}

Memory with_overheads(const Scenario& s, const Run& run, double allocated, double activations) {
  const double scattered = run.setup.stage >= 1 && !run.contiguous_gradients ? 2 : 1;
  Memory memory;
  memory.activations = activations;
  memory.allocated = allocated;
  memory.reserved = in_blocks(allocated * (1 + s.engine.fragmentation * scattered)) + s.engine.fixed_memory;
  return memory;
}

}  // namespace

Memory step_memory(const Scenario& s, const Run& run) {
  const cost::Setup& setup = run.setup;
  const double params = s.model.num_params / as_double(setup.tensor_parallel_size * setup.pipeline_stages);
  const double states = cost::model_state_bytes(size_of(s), setup);
  const double activations = activation_bytes(s, run, true);
  const double backward = activations + reduce_buffer_bytes(run, params) + live_parameter_bytes(s, run, params);
  return with_overheads(s, run, states + std::max(backward, step_phase_bytes(run, params)), activations);
}

Memory forward_memory(const Scenario& s, const Run& run) {
  const cost::Setup& setup = run.setup;
  const double params = s.model.num_params / as_double(setup.tensor_parallel_size * setup.pipeline_stages);
  const double states = cost::model_state_bytes(size_of(s), setup);
  const double activations = activation_bytes(s, run, true);
  return with_overheads(s, run, states + activations + live_parameter_bytes(s, run, params), activations);
}

}  // namespace dsat::host::sim
