// Scenarios with physics that differ from ZeRO's on purpose: drawn jobs of the family zero with one or two mechanisms
// of twists.h.
#include <fmt/format.h>

#include "search/surfaces/surface_maker.h"
#include "search/surfaces/surfaces.h"
#include "search/surfaces/twists.h"

namespace dsat::bench {
namespace {

constexpr uint64_t kSeed = 20'000;

void add_shapes_of_speed(SurfaceMaker& make) {
  {
    Surface& s = make.next("falls", "throughput falls again from half of the ceiling on");
    s.twists.push_back(falls_beyond(make.of_ceiling(s, 0.4), make.draw().uniform(0.15, 0.4)));
  }
  {
    Surface& s = make.next("thrash", "steps slow down when the memory is nearly full");
    s.twists.push_back(thrashes_near_full(0.85, make.draw().uniform(0.2, 0.5)));
  }
  {
    Surface& s = make.next("tiles", "throughput jumps with the micro batch: multiples of a tile are fast");
    s.twists.push_back(runs_in_tiles(make.draw().pick<int64_t>({4, 8}), make.draw().uniform(0.03, 0.1)));
  }
  {
    Surface& s = make.next("valley", "two humps: micro batches in the middle are slow");
    s.twists.push_back(valley(make.of_ceiling(s, 0.45), 0.7, make.draw().uniform(0.2, 0.4)));
  }
  {
    Surface& s = make.next("input", "the data loader bounds the throughput");
    SurfacePoint point;
    point.stage = 2;
    point.micro_batch = static_cast<int64_t>(make.of_ceiling(s, 0.3));
    const double latency_s = s.truth(point).latency_s();
    s.twists.push_back(input_bound(static_cast<double>(point.micro_batch * s.job.gpus) / latency_s));
    s.twists.push_back(falls_beyond(make.of_ceiling(s, 0.3), 0.05));
  }
}

void add_shapes_of_memory(SurfaceMaker& make) {
  {
    Surface& s = make.next("workspace", "memory is not monotone: micro batches in the middle need a workspace");
    const double from = make.of_ceiling(s, 0.35);
    s.twists.push_back(
        needs_workspace_between(static_cast<int64_t>(from), static_cast<int64_t>(1.8 * from) + 1, 0.6, 1.0));
  }
  {
    Surface& s = make.next("memory-power", "memory grows faster than the micro batch, in whole blocks");
    s.twists.push_back(memory_power(1.25, make.of_ceiling(s, 0.5)));
    s.twists.push_back(memory_blocks(0.02 * s.job.device_memory));
  }
}

void add_communication(SurfaceMaker& make) {
  {
    Surface& s = make.next("buckets", "buckets have an optimum in the middle");
    s.twists.push_back(bucket_optimum(make.draw().log_uniform(5e6, 3e8), make.draw().log_uniform(5e6, 3e8),
                                      make.draw().uniform(0.08, 0.2)));
  }
  {
    Surface& s = make.next("overlap", "overlap hurts, and stage 2 is the slowest");
    s.twists.push_back(overlap_hurts(make.draw().uniform(0.15, 0.4)));
    s.twists.push_back(stage_factors({1, 1, make.draw().uniform(1.1, 1.3), 1}));
  }
  {
    Surface& s = make.next("inverted", "a slow link inverts the stages' order");
    s.job.gpus = 16;
    s.job.network_bytes_s = 2e9;
    s.twists.push_back(stage_factors({1.5, 1.35, 1.2, 1}));
  }
}

void add_noise_and_more(SurfaceMaker& make) {
  {
    Surface& s = make.next("noise", "noise of 1, 3 and 10 % by phase, and stragglers");
    s.noise.forward = 0.01;
    s.noise.backward = 0.03;
    s.noise.step = 0.1;
    s.noise.straggler_chance = 0.1;
    s.noise.straggler_slowdown = 0.25;
  }
  {
    Surface& s = make.next("tiles-buckets", "tiles and buckets with an optimum in the middle");
    s.twists.push_back(runs_in_tiles(8, 0.06));
    s.twists.push_back(bucket_optimum(2e7, 8e7, 0.1));
  }
  for (int i = 0; i < 2; ++i) {
    Surface& s = make.next(fmt::format("anything-{}", i + 1), "not ZeRO-like at all: random smooth functions");
    s.twists.push_back(anything(kSeed + static_cast<uint64_t>(i), i == 0 ? 0.35 : 0.6));
    s.max_micro_batch = 1024;
  }
}

}  // namespace

std::vector<Surface> other_surfaces() {
  SurfaceMaker make("other", kSeed, 2, mix64(kSeed));
  add_shapes_of_speed(make);
  add_shapes_of_memory(make);
  add_communication(make);
  add_noise_and_more(make);
  return make.take();
}

}  // namespace dsat::bench
