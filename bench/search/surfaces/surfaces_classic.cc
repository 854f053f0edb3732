// Six models on 1 to 64 devices, of the kind that the classic searchers were made for, at stages 1 to 3. Each function
// describes one job.
#include <utility>

#include "search/surfaces/surfaces.h"

namespace dsat::bench {
namespace {

Surface base(std::string name, std::string about) {
  Surface surface;
  surface.family = "classic";
  surface.name = std::move(name);
  surface.about = std::move(about);
  surface.stages = {1, 2, 3};
  surface.noise = {0.01, 0.01, 0.01, 0, 0, 0.002, 0};
  return surface;
}

// Sets a transformer's parameters and layers, and the cost of a sample of `sequence` tokens.
void transformer(TrainingJob& job, double layers, double hidden, double sequence, double activation_per_layer) {
  job.layers = layers;
  job.num_params = 12 * layers * hidden * hidden + 5e4 * hidden;
  job.flops_per_sample = 6 * job.num_params * sequence;
  job.activation_bytes = layers * sequence * hidden * activation_per_layer;
  job.launch_s = layers * 1.5e-4;
}

Surface one_device() {
  Surface s = base("bert-1", "0.35B on one device of 32 GB");
  transformer(s.job, 24, 1024, 512, 34);
  s.job.gpus = 1;
  s.job.device_memory = 32e9;
  s.job.flop_per_s = 6e13;
  s.job.half_batch = 3;
  return s;
}

Surface one_node() {
  Surface s = base("gpt-4", "0.8B on 4 devices of 40 GB");
  transformer(s.job, 36, 1280, 1024, 34);
  s.job.gpus = 4;
  s.job.half_batch = 1.2;
  s.job.node_bytes_s = 5e10;
  return s;
}

Surface eight() {
  Surface s = base("gpt-8", "1.6B on 8 devices of 32 GB, activations checkpointed");
  transformer(s.job, 48, 1600, 1024, 3);
  s.job.backward_ratio = 3;
  s.job.flops_per_sample *= 4.0 / 3;
  s.job.device_memory = 32e9;
  s.job.node_bytes_s = 3e10;
  s.job.half_batch = 4;
  return s;
}

Surface several_nodes() {
  Surface s = base("t5-32", "3B on 32 devices of 40 GB");
  transformer(s.job, 32, 2816, 512, 34);
  s.job.gpus = 32;
  s.job.half_batch = 2;
  s.job.network_bytes_s = 8e9;
  return s;
}

Surface slow_network() {
  Surface s = base("gpt-64-slow", "13B on 64 devices of 40 GB over a slow network: only stage 3 fits well");
  transformer(s.job, 40, 5120, 1024, 3);
  s.job.backward_ratio = 3;
  s.job.flops_per_sample *= 4.0 / 3;
  s.job.gpus = 64;
  s.job.network_bytes_s = 2e9;
  s.job.message_s = 4e-5;
  s.user_stage = 3;
  return s;
}

Surface tight_memory() {
  Surface s = base("gpt-16-tight", "2.8B on 16 devices of 16 GB: bucket sizes decide the micro batch");
  transformer(s.job, 32, 2688, 1024, 10);
  s.job.gpus = 16;
  s.job.device_memory = 16e9;
  s.job.fixed_bytes = 8e8;
  s.job.half_batch = 1;
  s.job.network_bytes_s = 1.2e10;
  s.job.stage1_bucket = 1;
  s.job.allgather_copy = 1;
  s.user_stage = 2;
  return s;
}

}  // namespace

std::vector<Surface> classic_surfaces() {
  std::vector<Surface> surfaces{one_device(), one_node(), eight(), several_nodes(), slow_network(), tight_memory()};
  for (size_t i = 0; i < surfaces.size(); ++i) {
    surfaces[i].id = mix64(10'000) + i;
    surfaces[i].max_micro_batch = 1024;
  }
  return surfaces;
}

}  // namespace dsat::bench
