// Draws model, device and cluster, then the forms: saturation, waves, links, allocator, engine. The caller draws again
// if the job is not worth tuning.
#include "search/surfaces/draw_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace dsat::bench {
namespace {

const char* name_of(Saturation saturation) {
  constexpr std::array<const char*, 5> kNames{"hyperbola", "hill", "exponential", "power", "roofline"};
  return kNames[static_cast<size_t>(saturation)];
}

struct Shape {
  double hidden = 1024, sequence = 512;
  bool transformer = true;
};

Shape draw_transformer(Draw& draw, DrawnJob& job) {
  ModelForm& model = job.physics.model;
  MemoryForm& memory = job.physics.memory;
  Shape shape;
  shape.hidden = 64 * std::round(draw.log_uniform(5, 80));
  shape.sequence = draw.pick<double>({64, 128, 197, 256, 512, 577, 1024, 2048, 4096});
  const double vocabulary = draw.pick<double>({1e3, 30'522, 32'000, 50'257, 128'256});
  model.layers = std::round(draw.log_uniform(6, 64));
  model.params = 12 * model.layers * shape.hidden * shape.hidden + vocabulary * shape.hidden;
  model.small_size = 4 * shape.hidden;
  model.small_total = 13 * model.layers * shape.hidden;
  model.matrix_size = draw.pick<double>({1, 4}) * shape.hidden * shape.hidden;
  const double tokens = model.layers * shape.sequence * shape.hidden;
  const bool recomputed = draw.chance(0.35), flash = draw.chance(0.6);
  const double scores = flash ? 0 : 5 * shape.sequence / 64;
  memory.sample_bytes = tokens * (recomputed ? 2 : 34 + scores) * draw.uniform(0.7, 1.3);
  if (recomputed) memory.sample_bytes += tokens / model.layers * (34 + scores);
  memory.logits_bytes = shape.sequence * vocabulary * draw.pick<double>({0, 4, 6, 10});
  job.flops_per_sample = 6 * model.params * shape.sequence * (recomputed ? 4.0 / 3 : 1) * draw.uniform(1, 1.4);
  job.physics.compute.backward_ratio = (recomputed ? 3 : 2) * draw.uniform(0.8, 1.25);
  return shape;
}

// A convolution net: few parameters, large activations, algorithms that change with the micro batch.
Shape draw_convolution(Draw& draw, DrawnJob& job) {
  ModelForm& model = job.physics.model;
  Shape shape;
  shape.transformer = false;
  model.layers = std::round(draw.log_uniform(18, 150));
  model.params = draw.log_uniform(8e6, 6e8);
  shape.hidden = std::sqrt(model.params / model.layers / 4);
  model.small_size = 512;
  model.small_total = 2e3 * model.layers;
  model.matrix_size = model.params / model.layers * 2;
  job.physics.memory.sample_bytes = draw.log_uniform(3e7, 9e8);
  job.physics.compute.backward_ratio = 2 * draw.uniform(0.8, 1.2);
  job.flops_per_sample = draw.log_uniform(3e9, 6e11);
  return shape;
}

void draw_training(Draw& draw, DrawnJob& job) {
  ModelForm& model = job.physics.model;
  model.trained = model.params;
  model.state_bytes = draw.pick<double>({2, 6, 8, 12, 12, 12, 12, 16});
  if (model.state_bytes == 16) model.gradient_bytes = 4;
  if (draw.chance(0.12)) {
    model.element_bytes = model.gradient_bytes = 4;
    job.physics.memory.sample_bytes *= 1.8;
  }
  if (draw.chance(0.15)) {
    model.trained = model.params * draw.log_uniform(0.001, 0.02);
    model.frozen_matrix_size = model.matrix_size;
    model.matrix_size = std::min(model.matrix_size, model.trained / model.layers / 4);
    job.physics.compute.backward_ratio *= 0.6;
    job.kind += "few trained parameters, ";
  }
  if (model.state_bytes != 12) job.kind += fmt::format("{:.0f} bytes of states, ", model.state_bytes);
}

void draw_device(Draw& draw, const Shape& shape, DrawnJob& job) {
  ComputeForm& compute = job.physics.compute;
  job.device_memory = draw.pick<double>({8, 11, 16, 16, 24, 24, 32, 40, 48, 80, 80, 141}) * 1e9;
  job.usable_share = draw.uniform(0.9, 0.995);
  job.physics.memory_bytes_s = draw.log_uniform(3e11, 3.5e12);
  const double flop_s = draw.log_uniform(1.5e13, 4e14) / (job.physics.model.element_bytes == 4 ? 2 : 1);
  compute.sample_s = job.flops_per_sample / (1 + compute.backward_ratio) / flop_s;
  compute.saturation = draw.pick<Saturation>(
      {Saturation::hyperbola, Saturation::hill, Saturation::exponential, Saturation::power, Saturation::roofline});
  compute.half = draw.log_uniform(0.2, 12) * (shape.sequence < 300 || !shape.transformer ? 2 : 1);
  compute.exponent = compute.saturation == Saturation::power ? draw.uniform(0.08, 0.5) : draw.uniform(0.4, 0.9);
  compute.multiprocessors = draw.pick<double>({46, 68, 72, 80, 82, 84, 104, 108, 108, 114, 132, 142});
  if (draw.chance(0.65)) {
    const double tile = draw.pick<double>({64, 128, 128, 256});
    const double rows = std::max(1.0, shape.sequence / 128), columns = std::ceil(shape.hidden / tile);
    const double share = draw.uniform(0.2, 0.8), narrow = draw.uniform(0.3, 0.7);
    compute.kernels = {{share * narrow, rows * columns}, {share * (1 - narrow), 4 * rows * columns}};
    compute.backward_tiles = draw.pick<double>({1, 1, 0.5, 2});
    job.kind += "waves, ";
  }
  if (draw.chance(0.35)) {
    compute.multiple = draw.pick<int64_t>({2, 4, 8});
    compute.misfit = draw.uniform(0.02, 0.1);
  }
  if (draw.chance(0.25)) {
    compute.drop_at = draw.log_uniform(4, 100);
    compute.drop = draw.uniform(0.03, 0.15);
    compute.drop_width = draw.uniform(0.3, 2);
  }
  if (draw.chance(0.3)) compute.throttle = draw.uniform(0.02, 0.15);
  if (draw.chance(0.7)) compute.launch_s = job.physics.model.layers * draw.log_uniform(5e-5, 1e-3);
  compute.launch_power = draw.pick<double>({1.5, 4, 16});
  if (!shape.transformer) compute.copy_s = draw.uniform(0, 0.1) * compute.sample_s;
  job.kind += name_of(compute.saturation);
}

void draw_allocator(Draw& draw, DrawnJob& job) {
  MemoryForm& memory = job.physics.memory;
  memory.fixed_bytes = draw.uniform(0.4e9, 1.6e9) * (job.device_memory > 1.5e10 ? 1 : 0.5);
  memory.block_bytes = draw.pick<double>({1 << 9, 2 << 20, 2 << 20, 20 << 20, 512 << 20});
  memory.fragmentation = draw.chance(0.7) ? draw.uniform(0, 0.1) : 0;
  memory.variety = draw.uniform(0, 0.08);
  memory.early_copy = draw.uniform(0, 1);
  memory.tells_reserved = draw.chance(0.5);
  const double shape = draw.uniform(0, 1);
  if (shape < 0.15) {
    memory.padding = draw.uniform(0.04, 0.2);
    job.kind += ", padded samples";
  } else if (shape < 0.25) {
    memory.exponent = draw.uniform(0.88, 0.97);
  } else if (shape < 0.4) {
    memory.constant_bytes = draw.uniform(0.02, 0.12) * job.device_memory;
  } else if (shape < 0.5) {
    const int64_t from = static_cast<int64_t>(draw.log_uniform(4, 60));
    memory.workspaces = {{from, int64_t{1} << 40, draw.uniform(0.02, 0.1) * job.device_memory}};
    job.kind += ", a workspace";
  }
}

void draw_engine(Draw& draw, JobPhysics& physics) {
  physics.update_passes = draw.uniform(1, 3);
  physics.step_host_s = draw.log_uniform(5e-4, 3e-2);
  physics.bucket_host_s = draw.log_uniform(3e-5, 1e-3);
  physics.module_host_s = draw.log_uniform(2e-5, 1e-3);
  physics.overlap_cost = draw.uniform(0, 0.15);
  physics.hides = draw.uniform(0.5, 1);
  physics.stage2_cost = draw.uniform(0, 0.06);
  physics.host_bytes_s = draw.log_uniform(4e9, 4e10);
  physics.host_update_s = draw.log_uniform(3e-11, 1e-9);
  if (draw.chance(0.1)) physics.data_s = physics.compute.sample_s * draw.uniform(1, 4);
}

Json config_of(const ModelForm& model, Draw& draw) {
  Json config{{"train_micro_batch_size_per_gpu", 1}, {"gradient_accumulation_steps", 1}};
  if (model.state_bytes >= 12) {
    config["optimizer"] = {{"type", "AdamW"}, {"params", {{"lr", 1e-4}}}};
  } else {
    config["zero_allow_untested_optimizer"] = true;  // the script's own optimizer
  }
  const bool wide = model.gradient_bytes > model.element_bytes;  // at stage 0 DeepSpeed supports it for bf16 only
  if (wide) config["data_types"] = {{"grad_accum_dtype", "fp32"}};
  if (model.element_bytes == 2) config[draw.chance(0.5) && !wide ? "fp16" : "bf16"] = {{"enabled", true}};
  config["zero_optimization"] = Json::object();
  return config;
}

// The point of a stage that needs the least memory.
SurfacePoint leanest(int stage, bool contiguous, bool offload) {
  SurfacePoint point;
  point.stage = stage;
  point.reduce_bucket = 1e6;
  point.contiguous = contiguous;
  point.offload_optimizer = offload && stage >= 1;
  point.prefetch_bucket = point.reuse_distance = point.persistence_threshold = 0;
  return point;
}

}  // namespace

void draw_links(Draw& draw, LinkForm& link) {
  link.ranks = draw.pick<int64_t>({1, 1, 2, 2, 4, 4, 8, 8, 8, 16, 16, 32, 64, 128});
  link.ranks_per_node = draw.pick<int64_t>({1, 2, 4, 8, 8, 8});
  link.node_bytes_s = draw.log_uniform(6e9, 3e11);
  link.network_bytes_s = draw.log_uniform(8e8, 4e10);
  link.hop_s = draw.log_uniform(1e-6, 4e-5);
  link.tree = draw.chance(0.6);
  link.call_s = draw.log_uniform(8e-6, 1.5e-4);
  if (draw.chance(0.6)) link.protocols = {{1, draw.uniform(0.3, 0.5)}, {2, 0.95}, {draw.uniform(4, 8), 1}};
  if (draw.chance(0.5)) {
    link.half_bytes = draw.log_uniform(5e4, 8e6);
    link.half_power = draw.uniform(0.6, 1.5);
  }
  if (draw.chance(0.3)) {
    link.congested_bytes = draw.log_uniform(1.6e7, 2.5e8);
    link.congestion = draw.uniform(0.02, 0.12);
  }
}

void draw_noise(Draw& draw, SurfaceNoise& noise) {
  noise.trial = draw.pick<double>({0.005, 0.015, 0.03});
  noise.straggler_chance = draw.chance(0.5) ? draw.uniform(0.02, 0.06) : 0;
  noise.interference = draw.chance(0.7) ? draw.uniform(0.005, 0.04) : 0;
  noise.peak = draw.log_uniform(0.0005, 0.005);
}

DrawnJob draw_job(Draw& draw) {
  DrawnJob job;
  const Shape shape = draw.chance(0.75) ? draw_transformer(draw, job) : draw_convolution(draw, job);
  draw_training(draw, job);
  draw_device(draw, shape, job);
  draw_links(draw, job.physics.link);
  draw_allocator(draw, job);
  draw_engine(draw, job.physics);
  job.offload_axis = draw.chance(0.15);
  if (job.offload_axis) job.kind += ", offload to choose";
  return job;
}

int64_t highest_micro_batch(const DrawnJob& job, int64_t most) {
  const double room = job.usable_share * job.device_memory;
  const double ranks = static_cast<double>(job.physics.link.ranks);
  for (int64_t micro_batch = most; micro_batch >= 1; --micro_batch) {
    for (int stage = 0; stage <= 3; ++stage) {
      for (const bool contiguous : {true, false}) {
        SurfacePoint point = leanest(stage, contiguous, job.offload_axis);
        point.micro_batch = micro_batch;
        const PeakMemory peak = peak_memory(job.physics.model, job.physics.memory, ranks, point);
        if (peak.needed_bytes <= room) return micro_batch == most ? 0 : micro_batch;
      }
    }
  }
  return 0;
}

bool worth_tuning(const DrawnJob& job, Draw& draw) {
  constexpr int64_t kLeastCeiling = 5, kMostCeiling = 500;
  const int64_t highest = highest_micro_batch(job, kMostCeiling);
  if (highest < kLeastCeiling) return false;
  const auto peak = [&](SurfacePoint point) {
    const double ranks = static_cast<double>(job.physics.link.ranks);
    return peak_memory(job.physics.model, job.physics.memory, ranks, point).needed_bytes;
  };
  const double room = job.usable_share * job.device_memory;
  SurfacePoint point;
  point.stage = 3;
  point.overlap = true;
  if (peak(point) > room) return false;
  // One third of these jobs may have room for all stages; the others are tighter.
  SurfacePoint lean = leanest(0, true, false);
  lean.micro_batch = highest * 3 / 4;
  return peak(lean) > room || draw.chance(0.33);
}

Surface surface_of(const DrawnJob& job, Draw& draw) {
  JobPhysics physics = job.physics;
  Surface surface;
  surface.about = fmt::format("{:.2g}B parameters, {} devices of {:.0f} GB, {}", physics.model.params / 1e9,
                              physics.link.ranks, job.device_memory / 1e9, job.kind);
  surface.job.num_params = physics.model.params;
  surface.job.trained_params = physics.model.trained;
  surface.job.flops_per_sample = job.flops_per_sample;
  surface.job.gpus = physics.link.ranks;
  surface.job.device_memory = job.device_memory;
  surface.job.usable_share = job.usable_share;
  surface.job.activation_bytes = activation_bytes(physics.memory, 1) * draw.uniform(0.4, 1.1);
  draw_noise(draw, surface.noise);
  surface.offload_axis = job.offload_axis;
  surface.startup_s = draw.log_uniform(15, 120);
  surface.user_stage = draw.pick<int>({0, 1, 1, 2, 3});
  surface.user_config = config_of(physics.model, draw);
  physics.model.bf16 = surface.user_config.contains("bf16");
  surface.physics = [physics](const SurfacePoint& point) { return job_truth(physics, point); };
  surface.reports_device_memory = !draw.chance(0.15);
  if (!surface.reports_device_memory) surface.about += ", device memory unknown";
  const int64_t highest = highest_micro_batch(job, 4096);
  surface.max_micro_batch = highest + 8;
  return surface;
}

}  // namespace dsat::bench
