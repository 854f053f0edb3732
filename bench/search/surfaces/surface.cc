// The physics of ZeRO training: compute, communication and overlap, model states, buffers and activations.
// docs/bench-search.md has the sources of the formulas.
#include "search/surfaces/surface.h"

#include <algorithm>
#include <cmath>

namespace dsat::bench {
namespace {

double number(const Json& section, const char* key, double otherwise) {
  const auto it = section.find(key);
  return it != section.end() && it->is_number() ? it->get<double>() : otherwise;
}

bool flag(const Json& section, const char* key, bool otherwise) {
  const auto it = section.find(key);
  return it != section.end() && it->is_boolean() ? it->get<bool>() : otherwise;
}

// The time to move `bytes` between all ranks in `messages` pieces: a ring's share of the volume, a tree's latency.
double collective_s(const TrainingJob& job, double bytes, double messages) {
  const double ranks = static_cast<double>(job.gpus);
  if (job.gpus <= 1) return 0;
  const double link =
      job.gpus <= job.gpus_per_node ? job.node_bytes_s : std::min(job.node_bytes_s, job.network_bytes_s);
  return bytes * (ranks - 1) / ranks / link + std::ceil(messages) * job.message_s * (1 + std::log2(ranks));
}

struct StepTraffic {
  double forward_s = 0, backward_s = 0, step_s = 0;  // before overlap
  double tail_s = 0;                                 // of the last bucket, which nothing hides
};

constexpr double kHalf = 2;  // bytes of a 16-bit element

StepTraffic traffic_of(const TrainingJob& job, const SurfacePoint& point) {
  const double params = job.num_params;
  const double bytes = kHalf * params;
  const double buckets = params / std::min(params, point.reduce_bucket);
  StepTraffic traffic;
  if (point.stage == 0) {
    traffic.backward_s = collective_s(job, 2 * bytes, params / 5e8);
    return traffic;
  }
  const double reduce_volume = point.stage >= 2 && !point.reduce_scatter ? 2 : 1;
  traffic.backward_s = collective_s(job, reduce_volume * bytes, buckets);
  traffic.tail_s = traffic.backward_s / std::max(1.0, std::ceil(buckets));
  const double gather_slowdown = point.allgather_partitions ? 1 : 1 + job.broadcast_cost;
  if (point.stage < 3) {
    traffic.step_s = gather_slowdown * collective_s(job, bytes, params / std::min(params, point.allgather_bucket));
    return traffic;
  }
  const double pieces = std::max(job.layers, params / std::max(1.0, point.prefetch_bucket));
  const double gather_s = gather_slowdown * collective_s(job, bytes, pieces);
  traffic.forward_s = gather_s;
  traffic.backward_s += gather_s;
  return traffic;
}

double states_bytes(const TrainingJob& job, const SurfacePoint& point) {
  const double ranks = static_cast<double>(job.gpus);
  const double params = kHalf * job.num_params / (point.stage >= 3 ? ranks : 1);
  const double gradients =
      point.offload_optimizer && point.stage >= 2 ? 0 : kHalf * job.num_params / (point.stage >= 2 ? ranks : 1);
  const double optimizer = point.offload_optimizer ? 0 : 12 * job.num_params / (point.stage >= 1 ? ranks : 1);
  return params + gradients + optimizer;
}

double buffers_bytes(const TrainingJob& job, const SurfacePoint& point) {
  const double reduce = kHalf * std::min(job.num_params, point.reduce_bucket);
  double bytes = 0;
  if (point.stage >= 2) bytes += job.bucket_scale * reduce * (point.overlap ? 2 : 1);
  if (point.stage == 1) bytes += job.stage1_bucket * reduce;
  if (point.stage == 1 || point.stage == 2) {
    bytes += job.allgather_copy * kHalf * std::min(job.num_params, point.allgather_bucket);
  }
  if (point.stage == 3) {
    const double gathered = std::max(job.num_params / job.layers, point.prefetch_bucket);
    bytes += job.bucket_scale * kHalf * std::min(job.num_params, gathered);
  }
  return bytes;
}

}  // namespace

SurfacePoint point_of(const Json& config) {
  SurfacePoint point;
  point.micro_batch = static_cast<int64_t>(number(config, "train_micro_batch_size_per_gpu", 1));
  const Json zero = config.value("zero_optimization", Json::object());
  point.stage = static_cast<int>(number(zero, "stage", 0));
  point.reduce_bucket = number(zero, "reduce_bucket_size", point.reduce_bucket);
  point.allgather_bucket = number(zero, "allgather_bucket_size", point.allgather_bucket);
  point.prefetch_bucket = number(zero, "stage3_prefetch_bucket_size", point.prefetch_bucket);
  point.overlap = flag(zero, "overlap_comm", point.stage == 3);
  point.reduce_scatter = flag(zero, "reduce_scatter", true);
  point.contiguous = flag(zero, "contiguous_gradients", true);
  point.allgather_partitions = flag(zero, "allgather_partitions", true);
  const Json offload = zero.value("offload_optimizer", Json::object());
  point.offload_optimizer = offload.value("device", "none") != "none";
  point.persistence_threshold = number(zero, "stage3_param_persistence_threshold", point.persistence_threshold);
  point.reuse_distance = number(zero, "stage3_max_reuse_distance", point.reuse_distance);
  point.live_parameters = number(zero, "stage3_max_live_parameters", point.live_parameters);
  point.sub_group = number(zero, "sub_group_size", point.sub_group);
  return point;
}

Truth zero_physics(const TrainingJob& job, const SurfacePoint& point) {
  const double samples = static_cast<double>(point.micro_batch);
  const double compute_s = job.flops_per_sample * (samples + job.half_batch) / job.flop_per_s;
  const double forward_s = std::hypot(compute_s / (1 + job.backward_ratio), job.launch_s);
  double backward_s = job.backward_ratio * forward_s;
  if (point.stage >= 2 && point.contiguous) backward_s *= 1 + job.copy_cost;
  const StepTraffic traffic = traffic_of(job, point);

  Truth truth;
  truth.forward_s = forward_s + std::max(0.0, traffic.forward_s - job.prefetch_share * forward_s);
  if (point.stage >= 2 && point.overlap) {
    backward_s *= 1 + job.overlap_cost;
    const double hidden_s = job.overlap_share * backward_s;
    truth.backward_s = backward_s + std::max(traffic.backward_s - hidden_s, traffic.tail_s);
  } else {
    truth.backward_s = backward_s + traffic.backward_s;
  }
  const double share = point.stage >= 1 ? job.num_params / static_cast<double>(job.gpus) : job.num_params;
  const double update_s = point.offload_optimizer ? share * (job.host_update_s + 2 * kHalf / job.host_bytes_s)
                                                  : share * 30 / job.memory_bytes_s;
  truth.step_s = 1e-3 + update_s + traffic.step_s;

  double activations = job.activation_bytes * samples;
  if (point.stage >= 2 && !point.contiguous) activations *= 1 + job.fragmentation;
  truth.peak_bytes = states_bytes(job, point) + buffers_bytes(job, point) + job.fixed_bytes + activations;
  return truth;
}

Truth Surface::truth(const SurfacePoint& point) const {
  Truth truth = physics ? physics(point) : zero_physics(job, point);
  for (const Twist& twist : twists) twist(job, point, truth);
  return truth;
}

double Surface::throughput(const SurfacePoint& point, const Truth& truth) const {
  if (!fits(truth) || beyond_script(point)) return 0;
  return static_cast<double>(point.micro_batch * job.gpus) / truth.latency_s();
}

double Surface::throughput(const SurfacePoint& point) const { return throughput(point, truth(point)); }

Json Surface::base_config() const {
  if (user_config.is_object()) {
    Json config = user_config;
    config["zero_optimization"]["stage"] = user_stage;
    return config;
  }
  return {{"train_micro_batch_size_per_gpu", 1},
          {"gradient_accumulation_steps", 1},
          {"optimizer", {{"type", "AdamW"}, {"params", {{"lr", 1e-4}}}}},
          {"fp16", {{"enabled", true}}},
          {"zero_optimization", {{"stage", user_stage}}}};
}

config::Space Surface::space() const {
  config::SpaceRequest request;
  request.stages = stages;
  request.user_config = base_config();
  request.dp_size = job.gpus;
  if (offload_axis) request.space_file = {{"zero_optimization.offload_optimizer.device", {"none", "cpu"}}};
  return config::build_space(request).space;
}

}  // namespace dsat::bench
