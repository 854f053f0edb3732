// The ten families. Each draws models, devices and links that occur together, and states in what it is hard.
#include <algorithm>
#include <cmath>

#include "search/strangers/strangers.h"

namespace dsat::bench {
namespace {

// Public models, by their papers: layers, width, sequence, vocabulary.
const Network kGpt2Small{12, 768, 1024, 50'257}, kGpt2Medium{24, 1024, 1024, 50'257}, kGpt2Xl{48, 1600, 1024, 50'257};
const Network kBertLarge{24, 1024, 512, 30'522}, kOpt1B{24, 2048, 2048, 50'272}, kGptNeo3B{32, 2560, 2048, 50'257};
const Network kLlama7B{32, 4096, 2048, 32'000}, kLlama13B{40, 5120, 4096, 32'000}, kLlama30B{60, 6656, 4096, 32'000};
const Network kNeoX20B{44, 6144, 2048, 50'432}, kGemma2B{18, 2048, 4096, 256'000}, kQwen2B{28, 1536, 4096, 151'936};
const Network kVit{12, 768, 197, 1'000}, kVitLarge{24, 1024, 197, 1'000}, kTiny{6, 384, 256, 8'000};

// By data sheets: multiprocessors, dense FLOP/s at 16 bits, memory bandwidth, memory.
const Device kV100{80, 1.25e14, 9e11, 32e9}, kA100{108, 3.12e14, 1.55e12, 40e9}, kA100Large{108, 3.12e14, 2e12, 80e9};
const Device kH100{132, 9.9e14, 3.35e12, 80e9}, kA10{72, 1.25e14, 6e11, 24e9}, kL4{58, 1.21e14, 3e11, 24e9};
const Device kT4{40, 6.5e13, 3.2e11, 16e9}, kRtx3090{82, 7.1e13, 9.36e11, 24e9};

Fabric nvlink(int64_t ranks) { return {ranks, 8, 2.3e11, 4 * 2.5e10, 2e-6, 1.4e-5, 32, 1, 2e-5}; }
Fabric pcie(int64_t ranks) { return {ranks, 8, 1.2e10, 1.2e10, 5e-6, 1.8e-5, 16, 1, 2.5e-5}; }

// 128 to 512 nodes of one device over Ethernet: a ring of hundreds of slow steps, so each message costs milliseconds,
// and the bucket decides which stage is best. (Steps of rings: fabric.h; cloud instances with one A10, L4 or T4.)
void one_a_node(Draw& draw, StrangeJob& job) {
  job.training.network = draw.pick<Network>({kBertLarge, kGpt2Medium, kOpt1B, kGpt2Xl});
  job.training.device = draw.pick<Device>({kA10, kL4, kT4, kV100});
  job.training.network.recomputed = job.training.device.memory_bytes < 2e10 || draw.chance(0.5);
  job.training.fabric = {draw.pick<int64_t>({128, 256, 512}),
                         1,
                         1e12,
                         draw.pick<double>({1.25e9, 3.1e9, 6.2e9}),
                         0,
                         draw.log_uniform(1.5e-5, 5e-5),
                         32,
                         draw.uniform(1, 3),
                         3e-5};
  job.training.fabric.trees = draw.chance(0.5);
  job.training.engine.reduces_to_owners = draw.chance(0.3);
}

// Big jobs of a few long samples: the next micro batch fits with the leanest values alone, and is worth several percent
// because weights are gathered once for more samples. (Buffers: engine.h.)
void lean_fits(Draw& draw, StrangeJob& job) {
  job.training.network = draw.pick<Network>({kLlama13B, kLlama30B, kNeoX20B, kLlama7B});
  job.training.network.recomputed = true;
  job.training.device = draw.pick<Device>({kA100, kA100Large, kH100});
  job.training.fabric = nvlink(draw.pick<int64_t>({64, 128, 256}));
  job.training.fabric.between_bytes_s = draw.log_uniform(1e10, 5e10);
  job.training.fabric.oversubscription = draw.uniform(1, 2);
  job.tight = true;
}

// Short sequences on a device with many multiprocessors and one size of tiles: a micro batch that does not fill its
// last wave, or is no multiple of 8, is slow at every stage. (Waves: device.h; multiples of 8: NVIDIA's guide.)
void tile_waves(Draw& draw, StrangeJob& job) {
  job.training.network = draw.pick<Network>({kVit, kVitLarge, kTiny, kBertLarge});
  job.training.network.sequence = draw.pick<double>({64, 128, 197});
  job.training.device = draw.pick<Device>({kA100, kH100, kRtx3090});
  job.training.device.one_tile_size = true;
  job.training.device.padded_to = draw.pick<int64_t>({1, 4, 8});
  job.training.device.padding_cost = draw.uniform(0.05, 0.1);
  job.training.device.launch_s = 2e-6;  // graphs
  job.training.fabric = nvlink(draw.pick<int64_t>({1, 2, 4, 8}));
  job.surface.script_limit = draw.pick<int64_t>({96, 160, 224});
}

// A small model on one node with fast links: the micro batch decides, and the other keys do next to nothing, so each
// of them that is handed back is one too many.
void one_key(Draw& draw, StrangeJob& job) {
  job.training.network = draw.pick<Network>({kGpt2Small, kTiny, kVit, kVitLarge});
  job.training.device = draw.pick<Device>({kA100, kH100, kV100});
  job.training.fabric = nvlink(draw.pick<int64_t>({1, 2}));
  job.training.engine.step_s = 1e-3;
  job.training.engine.overlap_share = 0.01;
}

// A machine whose speed changes while the study runs: another job comes and stays, so that each has half of it; it
// heats up, exponentially as a body does; or its clock wanders. What is best stays best.
void drifting(Draw& draw, StrangeJob& job) {
  job.training.network = draw.pick<Network>({kGpt2Medium, kOpt1B, kGptNeo3B});
  job.training.device = draw.pick<Device>({kA100, kRtx3090, kV100});
  job.training.network.recomputed = draw.chance(0.5);
  job.training.fabric = draw.chance(0.5) ? nvlink(8) : pcie(8);
  const double depth = draw.uniform(0.1, 1), at_s = draw.uniform(300, 2500), width_s = draw.uniform(400, 1500);
  switch (draw.pick<int>({0, 1, 2})) {
    case 0:  // a neighbour comes and stays
      job.surface.machine = [=](double now_s) { return now_s < at_s ? 1 : 1 + depth; };
      break;
    case 1:  // heats up towards a limit
      job.surface.machine = [=](double now_s) { return 1 + 0.4 * depth * (1 - std::exp(-now_s / width_s)); };
      break;
    default:  // clocks wander
      job.surface.machine = [=](double now_s) { return 1 + 0.1 * depth * (1 + std::sin(now_s / width_s)); };
  }
}

// States on processors, or hardly any room: the update is bound by the host's memory, and a large micro batch hides it
// at last. (Bytes of Adam: Ren et al., ZeRO-Offload; bandwidth shared by the devices of a node.)
void cpu_adam(Draw& draw, StrangeJob& job) {
  job.training.network = draw.pick<Network>({kGpt2Xl, kGptNeo3B, kLlama7B});
  job.training.network.recomputed = true;
  job.training.device = draw.pick<Device>({kRtx3090, kV100, kA10, kA100});
  const int64_t ranks = draw.pick<int64_t>({2, 4, 8});
  job.training.fabric = pcie(ranks);
  job.training.host = {draw.log_uniform(4e9, 2.4e10), draw.log_uniform(6e10, 3e11) / static_cast<double>(ranks)};
  job.surface.offload_axis = true;
}

// The host launches more slowly than the device computes: up to a size all micro batches take the same time, and each
// module and bucket of a higher stage costs the host. (Launches: device.h; hooks in Python: engine.h.)
void host_bound(Draw& draw, StrangeJob& job) {
  job.training.network = draw.pick<Network>({kVit, kBertLarge, kGpt2Small, kGpt2Medium});
  job.training.network.sequence = draw.pick<double>({64, 128, 256});
  job.training.device = draw.pick<Device>({kH100, kA100Large});
  job.training.device.launch_s = draw.log_uniform(1e-5, 6e-5);
  job.training.device.kernels = draw.uniform(20, 60);
  job.training.engine.hook_s = draw.log_uniform(3e-4, 2e-3);
  job.training.engine.bucket_s = draw.log_uniform(3e-4, 2e-3);
  job.training.fabric = nvlink(draw.pick<int64_t>({2, 8}));
  job.surface.script_limit = draw.pick<int64_t>({64, 128, 200});
}

// Fast links in pairs or nodes and slow ones between, with a node that is late now and then: each message waits for the
// slowest, so few messages win, unless they can hide. (Lateness of the slowest of n grows with sqrt(2 ln n).)
void two_links(Draw& draw, StrangeJob& job) {
  job.training.network = draw.pick<Network>({kGpt2Xl, kGptNeo3B, kOpt1B, kLlama7B});
  job.training.device = draw.pick<Device>({kV100, kA100, kRtx3090});
  job.training.network.recomputed = draw.chance(0.7);
  const int64_t ranks = draw.pick<int64_t>({8, 16, 32});
  job.training.fabric = {ranks, draw.pick<int64_t>({2, 4}), 2e11, draw.log_uniform(2e9, 1.2e10), 2e-6, 2.5e-5, 8, 1,
                         2e-5};
  const double late = std::sqrt(2 * std::log(static_cast<double>(ranks)));
  job.training.fabric.call_s += late * draw.log_uniform(1e-5, 3e-4);
  job.training.engine.overlap_share = draw.uniform(0.05, 0.25);
  job.surface.noise.straggler_chance = 0.08;
}

// Small models with large vocabularies and a loss that is not fused: logits make the peak, more than layers do, and
// the first peaks, those of the update, say nothing about a sample. (10 bytes a logit: cross entropy in 32 bits.)
void logit_spike(Draw& draw, StrangeJob& job) {
  job.training.network = draw.pick<Network>({kGemma2B, kQwen2B, kGpt2Small});
  job.training.network.recomputed = draw.chance(0.8);
  job.training.device = draw.pick<Device>({kA100, kA100Large, kH100});
  job.training.fabric = draw.chance(0.5) ? nvlink(8) : nvlink(32);
  job.training.allocator.loss_bytes = draw.pick<double>({10, 14});
  job.training.allocator.fragments = draw.uniform(0.03, 0.12);
  job.training.allocator.segment_bytes = 20 << 20;
  job.training.allocator.reports_reserved = draw.chance(0.5);
}

// Many micro steps a step over a slow network: stages 0 and 1 reduce once a step, the others in each micro step, so
// messages weigh unlike at equal sizes. (DeepSpeed's boundary of accumulation: engine.h.)
void accumulation(Draw& draw, StrangeJob& job) {
  job.training.network = draw.pick<Network>({kGpt2Xl, kOpt1B, kGptNeo3B, kBertLarge});
  job.training.network.recomputed = draw.chance(0.5);
  job.training.device = draw.pick<Device>({kA100, kA10, kV100});
  job.training.fabric = draw.chance(0.5) ? pcie(8) : nvlink(draw.pick<int64_t>({16, 32}));
  job.training.fabric.between_bytes_s = draw.log_uniform(3e9, 2.5e10);
  job.training.engine.accumulation = draw.pick<double>({4, 8, 16});
}

}  // namespace

std::vector<StrangeFamily> strange_families() {
  return {{"one-a-node", "many nodes of one device over a slow network", one_a_node},
          {"lean-fits", "the next micro batch fits with the leanest values alone", lean_fits},
          {"tile-waves", "sizes that are slow at every stage", tile_waves},
          {"one-key", "the micro batch alone matters", one_key},
          {"drifting", "a machine whose speed changes", drifting},
          {"cpu-adam", "the update on processors", cpu_adam},
          {"host-bound", "a host that launches too slowly", host_bound},
          {"two-links", "fast links inside, slow and late ones between", two_links},
          {"logit-spike", "logits make the peak", logit_spike},
          {"accumulation", "many micro steps a step", accumulation}};
}

}  // namespace dsat::bench
