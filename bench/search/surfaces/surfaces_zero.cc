// Scenarios with ZeRO's physics and random constants. A job that is implausible or not worth tuning is drawn again.
#include <fmt/format.h>

#include <cmath>

#include "search/surfaces/surfaces.h"

namespace dsat::bench {
namespace {

void draw_model(Draw& draw, TrainingJob& job) {
  const double hidden = 128 * std::round(draw.log_uniform(6, 64));
  job.layers = std::round(draw.log_uniform(12, 72));
  job.num_params = 12 * job.layers * hidden * hidden + 5e4 * hidden;
  const double sequence = draw.pick<double>({256, 512, 1024, 2048, 4096});
  const bool checkpointing = draw.chance(0.4);
  const double per_layer = checkpointing ? 2.6 : draw.chance(0.5) ? 34 : 34 + 5 * sequence / 64;
  job.activation_bytes = job.layers * sequence * hidden * per_layer * draw.uniform(0.8, 1.3);
  job.backward_ratio = (checkpointing ? 3 : 2) * draw.uniform(0.85, 1.2);
  job.flops_per_sample = 2 * job.num_params * sequence * (1 + job.backward_ratio);
  job.launch_s = job.layers * draw.log_uniform(5e-5, 4e-4);
}

void draw_cluster(Draw& draw, TrainingJob& job) {
  job.gpus = int64_t{1} << static_cast<int>(draw.uniform(0, 12.99));
  job.gpus_per_node = draw.pick<int64_t>({1, 4, 8, 8});
  job.device_memory = draw.pick<double>({16, 24, 32, 40, 48, 80, 141}) * 1e9;
  job.usable_share = draw.uniform(0.94, 0.995);
  job.fixed_bytes = draw.uniform(0.02, 0.06) * job.device_memory;
  job.flop_per_s = draw.log_uniform(2e13, 5e14);
  job.half_batch = draw.log_uniform(0.15, 12);
  job.memory_bytes_s = draw.log_uniform(4e11, 3e12);
  job.node_bytes_s = draw.log_uniform(1e10, 3e11);
  job.network_bytes_s = draw.log_uniform(5e8, 4e10);
  job.message_s = draw.log_uniform(4e-6, 1e-4);
}

void draw_engine(Draw& draw, TrainingJob& job) {
  job.overlap_share = draw.uniform(0.4, 0.95);
  job.prefetch_share = draw.uniform(0.3, 0.9);
  job.overlap_cost = draw.uniform(0, 0.05);
  job.bucket_scale = draw.uniform(0.85, 1.2);
  job.stage1_bucket = draw.chance(0.3) ? 1 : 0;
  job.allgather_copy = draw.chance(0.3) ? 1 : 0;
  job.fragmentation = draw.uniform(0, 0.08);
  job.copy_cost = draw.uniform(0, 0.03);
  job.broadcast_cost = draw.uniform(0, 0.1);
  job.host_bytes_s = draw.log_uniform(5e9, 5e10);
  job.host_update_s = draw.log_uniform(3e-11, 1e-9);
}

// The largest micro batch that fits at a stage, with small buckets, and with offload if the study has it.
int64_t ceiling(const Surface& surface, int stage) {
  SurfacePoint point;
  point.stage = stage;
  point.offload_optimizer = surface.offload_axis && stage >= 2;
  point.reduce_bucket = point.allgather_bucket = 5e6;
  point.micro_batch = 2;
  const double second = surface.truth(point).peak_bytes;
  point.micro_batch = 1;
  const double first = surface.truth(point).peak_bytes;
  const double room = surface.job.usable_share * surface.job.device_memory - first;
  return room < 0 ? 0 : 1 + static_cast<int64_t>(room / (second - first));
}

}  // namespace

Surface draw_surface(Draw& draw) {
  constexpr int64_t kLeastCeiling = 6, kMostCeiling = 700;
  for (;;) {
    Surface surface;
    draw_model(draw, surface.job);
    draw_cluster(draw, surface.job);
    draw_engine(draw, surface.job);
    surface.noise.forward = surface.noise.backward = surface.noise.step = draw.log_uniform(0.002, 0.015);
    surface.noise.straggler_chance = draw.chance(0.25) ? 0.03 : 0;
    surface.noise.peak = draw.log_uniform(0.0005, 0.005);
    surface.startup_s = draw.log_uniform(15, 120);
    surface.user_stage = draw.pick<int>({0, 1, 1, 2, 3});
    surface.offload_axis = draw.chance(0.2);
    const int64_t highest = ceiling(surface, 3);
    if (highest < kLeastCeiling || highest > kMostCeiling) continue;
    // One quarter of these jobs may have room for all stages; the others are tighter.
    if (ceiling(surface, 0) > highest * 3 / 4 && !draw.chance(0.25)) continue;
    surface.max_micro_batch = highest + highest / 3 + 16;
    return surface;
  }
}

std::vector<Surface> zero_surfaces(uint64_t seed, int count) {
  std::vector<Surface> surfaces;
  for (int i = 0; i < count; ++i) {
    Draw draw(seed, 1, static_cast<uint64_t>(i));
    Surface surface = draw_surface(draw);
    surface.family = "zero";
    surface.name = fmt::format("zero-{}", i + 1);
    surface.id = mix64(seed) + static_cast<uint64_t>(i);
    surface.about =
        fmt::format("{:.2g}B parameters, {} devices of {:.0f} GB{}", surface.job.num_params / 1e9, surface.job.gpus,
                    surface.job.device_memory / 1e9, surface.offload_axis ? ", offload to choose" : "");
    surfaces.push_back(std::move(surface));
  }
  return surfaces;
}

}  // namespace dsat::bench
