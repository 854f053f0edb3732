// Adds computation, communication that is not hidden, the optimizer, offloading and the pipeline's bubble.
#include <algorithm>
#include <cmath>

#include "sim/collectives.h"
#include "sim/step.h"

namespace dsat::host::sim {
namespace {

double as_double(int64_t value) { return static_cast<double>(value); }

// Values that several formulas need.
struct Parts {
  Parts(const Scenario& s, const Run& r) : scenario(s), run(r), ring(s, r.setup.data_parallel_size, model_parallel()) {
    const cost::Setup& setup = run.setup;
    params = s.model.num_params / as_double(model_parallel());
    layers = s.model.shape.layers / as_double(setup.pipeline_stages);
    ranks = as_double(setup.data_parallel_size);
    element_bytes = setup.precision == cost::Precision::fp32 ? 4 : 2;
    gradient_bytes = setup.accumulation_dtype == cost::Precision::fp32 ? 4 : 2;
  }
  int64_t model_parallel() const { return run.setup.tensor_parallel_size * run.setup.pipeline_stages; }

  const Scenario& scenario;
  const Run& run;
  double params = 0, layers = 0, ranks = 1, element_bytes = 2, gradient_bytes = 2;
  Ring ring;
};

// Returns FLOP of one forward pass of the whole model for a micro batch; below, only of its attention matrices. Source:
// Narayanan et al. (arXiv:2104.04473), section 3.
double forward_flops(const Model& model, double samples) {
  const cost::TransformerShape& t = model.shape;
  const double tokens = samples * t.sequence;
  return tokens *
         (24 * t.layers * t.hidden * t.hidden + 4 * t.layers * t.sequence * t.hidden + 2 * t.hidden * model.vocab);
}
double attention_flops(const Model& model, double samples) {
  const cost::TransformerShape& t = model.shape;
  return samples * t.sequence * 4 * t.layers * t.sequence * t.hidden;
}

struct Compute {
  double forward = 0, backward = 0;  // seconds of a micro step
  double flops = 0;                  // useful FLOP of a micro step per device
};

// A device reaches a share of its peak that grows with the batch and saturates. Launching a layer's kernels takes a
// fixed time.
Compute compute_of(const Parts& p) {
  const Scenario& s = p.scenario;
  const cost::Setup& setup = p.run.setup;
  const double samples = as_double(setup.micro_batch);
  const double tokens = samples * s.model.shape.sequence / as_double(setup.tensor_parallel_size);
  const double reached = s.engine.efficiency * tokens / (tokens + s.engine.half_tokens);
  const double peak = s.cluster.flops * (setup.precision == cost::Precision::fp32 ? 0.5 : 1);
  const double rate = peak * reached * as_double(p.model_parallel());
  const double launch = p.layers * s.engine.kernel_latency_us * 1e-6;
  const double forward = forward_flops(s.model, samples);
  const double recomputed = p.run.checkpointing == cost::Checkpointing::full        ? forward
                            : p.run.checkpointing == cost::Checkpointing::selective ? attention_flops(s.model, samples)
                                                                                    : 0;
  Compute c;
  c.forward = forward / rate + launch;
  c.backward = (2 * forward + recomputed) / rate + launch * (recomputed > 0 ? 3 : 2);
  c.flops = 3 * forward / as_double(p.model_parallel());
  return c;
}

// Tensor parallelism reduces the activations of a layer twice in each direction (Shoeybi et al., arXiv:1909.08053).
double tensor_parallel_seconds(const Parts& p) {
  const cost::Setup& setup = p.run.setup;
  if (setup.tensor_parallel_size == 1) return 0;
  const cost::TransformerShape& t = p.scenario.model.shape;
  const double bytes = as_double(setup.micro_batch) * t.sequence * t.hidden * p.element_bytes;
  const Ring inside(p.scenario, setup.tensor_parallel_size, 1);
  return 2 * p.layers * inside.all_reduce(bytes, 1);
}

double bucket_calls(double elements, double bucket) {
  return std::max(1.0, std::ceil(elements / std::max(1.0, bucket)));
}

// Returns the time to reduce the gradients of one backward pass.
double reduce_seconds(const Parts& p) {
  const cost::Setup& setup = p.run.setup;
  const double bytes = p.params * p.gradient_bytes;
  const double calls = bucket_calls(p.params, setup.stage == 0 ? 5e8 : setup.reduce_bucket_elements);
  const bool scattered = setup.stage == 3 || (setup.stage >= 1 && p.run.reduce_scatter);
  return scattered ? p.ring.gather(bytes, calls) : p.ring.all_reduce(bytes, calls);
}

// Returns the part of `communication` that `compute` does not hide. With overlap, this is the time beyond the
// computation, and the last bucket, which has no computation beside it.
double exposed(double communication, double compute, double calls, bool overlaps) {
  if (!overlaps) return communication;
  const double last = communication / calls;
  return last + std::max(0.0, communication - last - compute * (1 - 1 / calls));
}

// Stage 3 gathers the parameters layer by layer in both directions.
struct Gathers {
  double forward = 0, backward = 0, overlapped = 0;
};
Gathers gather_seconds(const Parts& p, const Compute& c) {
  const cost::Setup& setup = p.run.setup;
  Gathers g;
  if (setup.stage != 3) return g;
  const double layer = p.scenario.model.layer_params() / as_double(setup.tensor_parallel_size);
  const double fetched = std::max(layer, std::min(setup.prefetch_bucket_elements, p.run.max_live));
  const double calls = bucket_calls(p.params, fetched);
  double seconds = p.ring.gather(p.params * p.element_bytes, calls);
  if (setup.parameter_device == cost::Device::host) {
    seconds += p.params / p.ranks * p.element_bytes / p.scenario.cluster.pcie_bandwidth;
  }
  // Prefetching needs room for at least one more layer, and its own stream.
  const bool ahead = setup.overlap_comm && setup.prefetch_bucket_elements > 0 && p.run.max_live > 2 * layer;
  g.forward = exposed(seconds, c.forward, calls, ahead);
  // Parameters kept since the forward pass are not gathered again.
  const double kept = std::min({1.0, p.run.max_live / p.params, p.run.max_reuse_distance / (2 * p.params)});
  g.backward = exposed(seconds * (1 - (kept >= 1 ? 1 : 0)), c.backward, calls, ahead);
  g.overlapped = ahead ? 1 : 0;
  return g;
}

double offloaded_gradient_seconds(const Parts& p) {
  if (p.run.setup.optimizer_device == cost::Device::accelerator) return 0;
  const double share = p.run.setup.stage >= 2 ? p.params / p.ranks : p.params;
  return share * p.gradient_bytes / p.scenario.cluster.pcie_bandwidth;
}

// Adam reads and writes master weights, momentum, variance and gradient: about 30 bytes per parameter (Ren et al.,
// "ZeRO-Offload").
double optimizer_seconds(const Parts& p) {
  const cost::Setup& setup = p.run.setup;
  const Cluster& cluster = p.scenario.cluster;
  constexpr double kBytes = 30;
  const double share = setup.stage >= 1 ? p.params / p.ranks : p.params;
  if (setup.optimizer_device == cost::Device::accelerator) return share * kBytes / cluster.memory_bandwidth;
  const double local = std::min<double>(as_double(cluster.gpus_per_node), p.ranks * as_double(p.model_parallel()));
  return share * kBytes / (cluster.cpu_memory_bandwidth / local) + share * p.element_bytes / cluster.pcie_bandwidth;
}

// Stages 1 and 2 gather the updated parameters after the step.
double after_step_seconds(const Parts& p) {
  const cost::Setup& setup = p.run.setup;
  if (setup.stage != 1 && setup.stage != 2) return 0;
  const double bytes = p.params * p.element_bytes;
  const double calls = bucket_calls(p.params, setup.allgather_bucket_elements);
  return p.run.allgather_partitions ? p.ring.gather(bytes, calls) : p.ring.broadcasts(bytes, calls);
}

// A step takes as long as that of the slowest device: the expected maximum of N normal speeds.
double slowest_of(const Scenario& s, double devices) {
  return 1 + s.noise.imbalance * std::sqrt(2 * std::log(std::max(devices, 1.0)));
}

}  // namespace

StepTime step_time(const Scenario& scenario, const Run& run) {
  const Parts p(scenario, run);
  const cost::Setup& setup = run.setup;
  const Compute c = compute_of(p);
  const Gathers gathers = gather_seconds(p, c);
  const double tensor = tensor_parallel_seconds(p);
  const double reduce = reduce_seconds(p);
  const double calls = bucket_calls(p.params, setup.reduce_bucket_elements);
  // Copying gradients into contiguous memory costs one pass over them.
  const double copy = setup.stage >= 1 && run.contiguous_gradients
                          ? 2 * p.params * p.gradient_bytes / scenario.cluster.memory_bandwidth
                          : 0;
  // Stages 0 and 1 reduce once, after the last micro step; stages 2 and 3 reduce in each micro step.
  const bool every_time = setup.stage >= 2;
  const bool overlaps = setup.stage >= 2 && setup.overlap_comm;
  const double slowed = overlaps && p.ranks > 1 ? 1 + scenario.engine.overlap_slowdown : 1;
  const double slowest = slowest_of(scenario, p.ranks * static_cast<double>(p.model_parallel()));
  const double backward_compute = c.backward * slowed * slowest;
  const double reduced = exposed(reduce, backward_compute, calls, overlaps) + offloaded_gradient_seconds(p);
  const double once =
      every_time ? 0 : reduced / run.accumulation;  // a micro step's share of the single reduction per step

  StepTime t;
  t.forward = c.forward * slowest * (gathers.overlapped > 0 ? slowed : 1) + gathers.forward + tensor;
  t.backward = backward_compute + gathers.backward + tensor + copy + (every_time ? reduced : once);
  t.step = optimizer_seconds(p) + after_step_seconds(p) + 1e-3;
  // Narayanan et al.: p - 1 of A + p - 1 slots of a pipeline are idle. Nothing is reduced in idle slots.
  const double idle = static_cast<double>(setup.pipeline_stages) - 1;
  t.total = (run.accumulation + idle) * (t.forward + t.backward) - idle * once + t.step;
  t.flops_per_device = c.flops * run.accumulation;
  return t;
}

}  // namespace dsat::host::sim
