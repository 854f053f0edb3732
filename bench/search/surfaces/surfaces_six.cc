// Six handmade jobs: a vision transformer, BERT over PCIe, LoRA, a tight GPT, a large model over a slow network, and a
// convolutional net with a small data set. Seeds other than 1 multiply the main constants by 0.75 to 1.33.
#include <utility>

#include "search/surfaces/draw_job.h"
#include "search/surfaces/surfaces.h"

namespace dsat::bench {
namespace {

constexpr uint64_t kSixStream = 41;

void transformer(DrawnJob& job, double layers, double hidden, double sequence, double vocabulary) {
  ModelForm& model = job.physics.model;
  model.layers = layers;
  model.params = model.trained = 12 * layers * hidden * hidden + vocabulary * hidden;
  model.small_size = 4 * hidden;
  model.small_total = 13 * layers * hidden;
  model.matrix_size = 4 * hidden * hidden;
  job.physics.memory.sample_bytes = layers * sequence * hidden * 34;
  job.flops_per_sample = 6 * model.params * sequence;
}

// Sets the time of a sample by the best rate of forward and backward.
void rate(DrawnJob& job, double flop_s) {
  job.physics.compute.sample_s = job.flops_per_sample / (1 + job.physics.compute.backward_ratio) / flop_s;
}

// A small model with waves: 28 samples fill the device, 29 take two waves. The best is far below the ceiling.
DrawnJob vision() {
  DrawnJob job;
  job.kind = "vision transformer on one device: waves of 28 samples, 8-bit states";
  transformer(job, 12, 384, 197, 1000);
  job.device_memory = 11e9;
  job.usable_share = 0.96;
  job.physics.model.state_bytes = 6;
  ComputeForm& compute = job.physics.compute;
  rate(job, 2.2e13);
  compute.saturation = Saturation::roofline;
  compute.half = 4;
  compute.multiprocessors = 84;
  compute.kernels = {{0.65, 3}, {0.15, 12}};
  compute.launch_s = 6e-3;
  compute.launch_power = 8;
  job.physics.link.ranks = 1;
  job.physics.memory.sample_bytes *= 2.2;
  job.physics.memory.fixed_bytes = 8e8;
  job.physics.memory.fragmentation = 0.03;
  return job;
}

// A slow bus favours large micro batches, and at full power the device slows down.
DrawnJob pcie() {
  DrawnJob job;
  job.kind = "BERT-large on four devices over PCIe, power throttling";
  transformer(job, 24, 1024, 128, 30522);
  job.device_memory = 24e9;
  job.physics.compute.saturation = Saturation::hill;
  job.physics.compute.half = 5;
  job.physics.compute.exponent = 0.7;
  job.physics.compute.throttle = 0.12;
  job.physics.compute.multiple = 8;
  job.physics.compute.misfit = 0.05;
  rate(job, 7e13);
  LinkForm& link = job.physics.link;
  link = {4, 4, 7e9, 7e9, 8e-6, {{1, 0.4}, {2, 0.95}, {6, 1}}, false, 4e5, 1, 0, 0, 3e-5};
  job.physics.overlap_cost = 0.1;
  job.physics.memory.fixed_bytes = 1.1e9;
  job.physics.memory.block_bytes = 20 << 20;
  return job;
}

// With few trained parameters, backward is short, stages hardly matter, and logits and padding fill the memory.
DrawnJob lora() {
  DrawnJob job;
  job.kind = "7B with 0.4 % of its parameters trained, padded samples, large logits, two devices";
  transformer(job, 32, 4096, 1024, 128'256);
  ModelForm& model = job.physics.model;
  model.trained = 0.004 * model.params;
  model.frozen_matrix_size = model.matrix_size;
  model.matrix_size = model.trained / 200;
  job.device_memory = 80e9;
  MemoryForm& memory = job.physics.memory;
  memory.sample_bytes = 32 * 1024 * 4096 * 10.0;
  memory.logits_bytes = 1024 * 128'256 * 6.0;
  memory.padding = 0.08;
  memory.variety = 0.04;
  memory.fragmentation = 0.05;
  memory.fixed_bytes = 1.4e9;
  memory.tells_reserved = false;
  ComputeForm& compute = job.physics.compute;
  compute.backward_ratio = 1.15;
  job.flops_per_sample = 4 * model.params * 1024;
  compute.saturation = Saturation::exponential;
  compute.half = 1.5;
  rate(job, 2.6e14);
  compute.launch_s = 2.5e-2;
  job.physics.link = {2, 2, 2.5e10, 2.5e10, 4e-6, {{1, 1}}, false, 0, 1, 0, 0, 2e-5};
  return job;
}

// Memory is so tight that buckets decide, and too large messages are slow.
DrawnJob tight() {
  DrawnJob job;
  job.kind = "2.7B on eight devices of 40 GB, gradients kept in fp32, large messages are slow";
  transformer(job, 32, 2560, 2048, 50'257);
  job.device_memory = 40e9;
  job.usable_share = 0.95;
  job.physics.model.state_bytes = 12;
  job.physics.model.gradient_bytes = 4;
  MemoryForm& memory = job.physics.memory;
  memory.sample_bytes = 32.0 * 2048 * 2560 * 14;
  memory.logits_bytes = 2048 * 50'257 * 6.0;
  memory.fragmentation = 0.06;
  memory.variety = 0.05;
  memory.fixed_bytes = 1.5e9;
  job.physics.compute.saturation = Saturation::power;
  job.physics.compute.half = 8;
  job.physics.compute.exponent = 0.12;
  rate(job, 1.5e14);
  job.physics.link = {8, 8, 9e10, 9e10, 5e-6, {{1, 0.4}, {2, 0.95}, {6, 1}}, true, 1e6, 0.8, 6e7, 0.1, 3e-5};
  job.physics.overlap_cost = 0.06;
  job.physics.stage2_cost = 0.02;
  return job;
}

// Only stage 3 fits. Gathering over the network and the host's hooks are left to tune.
DrawnJob large_model() {
  DrawnJob job;
  job.kind = "13B on 64 devices over a slow network, recomputed: gathering and hooks";
  transformer(job, 40, 5120, 1024, 32'000);
  job.device_memory = 32e9;
  MemoryForm& memory = job.physics.memory;
  memory.sample_bytes = 40.0 * 1024 * 5120 * 2;
  memory.constant_bytes = 6e8;
  memory.logits_bytes = 1024 * 32'000 * 6.0;
  memory.fixed_bytes = 1.6e9;
  memory.variety = 0.06;
  job.physics.compute.backward_ratio = 3;
  job.flops_per_sample *= 4.0 / 3;
  job.physics.compute.saturation = Saturation::hyperbola;
  job.physics.compute.half = 0.6;
  rate(job, 1.1e14);
  job.physics.compute.drop_at = 20;
  job.physics.compute.drop = 0.05;
  job.physics.link = {64, 8, 1.5e11, 3e9, 1.2e-5, {{1, 0.5}, {5, 1}}, true, 3e6, 1, 0, 0, 4e-5};
  job.physics.module_host_s = 6e-4;
  job.physics.overlap_cost = 0.03;
  return job;
}

// Algorithms change with the micro batch. The data set has 300 samples, so more than 150 a device fail.
DrawnJob convolutions() {
  DrawnJob job;
  job.kind = "a net of convolutions on two devices; the script takes at most 150 samples a device";
  ModelForm& model = job.physics.model;
  model.layers = 50;
  model.params = model.trained = 2.6e7;
  model.small_size = 512;
  model.small_total = 6e4;
  model.matrix_size = 2e6;
  model.element_bytes = model.gradient_bytes = 4;
  model.state_bytes = 8;
  job.device_memory = 24e9;
  MemoryForm& memory = job.physics.memory;
  memory.sample_bytes = 9e7;
  memory.workspaces = {{32, 80, 2.5e9}};
  memory.fixed_bytes = 9e8;
  job.flops_per_sample = 2.5e10;
  ComputeForm& compute = job.physics.compute;
  compute.saturation = Saturation::hill;
  compute.half = 12;
  compute.exponent = 0.85;
  compute.algorithms = {{32, 80, 1.1}, {128, 1 << 20, 0.93}};
  rate(job, 1.2e13);
  compute.copy_s = 0.08 * compute.sample_s;
  compute.launch_s = 9e-3;
  job.physics.link = {2, 2, 1e10, 1e10, 6e-6, {{1, 1}}, false, 2e5, 1, 0, 0, 2e-5};
  job.physics.step_host_s = 3e-3;
  return job;
}

void move_constants(DrawnJob& job, Draw& draw) {
  const auto moved = [&](double& value) { value *= draw.log_uniform(0.75, 1.33); };
  JobPhysics& physics = job.physics;
  for (double* value :
       {&physics.compute.sample_s, &physics.compute.half, &physics.compute.launch_s, &physics.compute.backward_ratio,
        &physics.compute.misfit, &physics.compute.throttle, &physics.link.node_bytes_s, &physics.link.network_bytes_s,
        &physics.link.hop_s, &physics.memory.sample_bytes, &physics.memory.fixed_bytes, &physics.memory.fragmentation,
        &physics.memory.padding, &physics.overlap_cost, &physics.module_host_s}) {
    moved(*value);
  }
  for (TiledKernels& kernels : physics.compute.kernels) moved(kernels.tiles_per_sample);
}

}  // namespace

std::vector<Surface> six_surfaces(uint64_t seed) {
  const std::vector<std::pair<const char*, DrawnJob>> jobs{
      {"six-vision", vision()}, {"six-pcie", pcie()},        {"six-lora", lora()},
      {"six-tight", tight()},   {"six-slow", large_model()}, {"six-convolutions", convolutions()}};
  constexpr double kNoises[] = {0.015, 0.005, 0.03, 0.015, 0.015, 0.03};
  std::vector<Surface> surfaces;
  for (size_t i = 0; i < jobs.size(); ++i) {
    Draw draw(seed, kSixStream, i);
    DrawnJob job = jobs[i].second;
    if (seed != 1) move_constants(job, draw);
    Surface surface = surface_of(job, draw);
    surface.family = "six";
    surface.name = jobs[i].first;
    surface.id = mix64(50'000 + seed) + i;
    surface.noise.trial = kNoises[i];
    if (surface.name == "six-convolutions") surface.script_limit = 150;
    surfaces.push_back(std::move(surface));
  }
  return surfaces;
}

}  // namespace dsat::bench
