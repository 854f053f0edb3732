// Reads a configuration as DeepSpeed does, and asks the physics.
#include "search/surfaces/surface.h"

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

Truth Surface::truth(const SurfacePoint& point) const {
  Truth truth = physics(point);
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
