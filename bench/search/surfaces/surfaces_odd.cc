// Twelve drawn jobs, each with a mechanism that is strong enough to decide where the best is. All mechanisms occur in
// real jobs; docs/bench-search.md lists them.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "search/surfaces/draw_job.h"
#include "search/surfaces/surfaces.h"
#include "search/surfaces/twists.h"

namespace dsat::bench {
namespace {

constexpr uint64_t kOddStream = 43;
constexpr int64_t kLeastCeiling = 12;  // a lower ceiling has no room for a mechanism

// A mechanism changes the job before it becomes a surface, or the surface afterwards. `ceiling`: the job's largest
// micro batch before the change.
struct Mechanism {
  const char* name;
  const char* about;
  std::function<void(DrawnJob&, Draw&, double ceiling)> bend;
  std::function<void(Surface&, Draw&, double ceiling)> finish;
};

void wave(DrawnJob& job, double share, double period) {
  job.physics.compute.kernels = {{share, job.physics.compute.multiprocessors / period}};
  job.physics.compute.backward_tiles = 1;
}

// Moves the job to one node, where compute decides. Returns the new ceiling, which depends on the number of devices.
double on_one_node(DrawnJob& job, Draw& draw) {
  LinkForm& link = job.physics.link;
  link.ranks = draw.pick<int64_t>({1, 2, 4, 8});
  link.ranks_per_node = 8;
  link.node_bytes_s = std::max(link.node_bytes_s, 1e11);
  job.physics.data_s = 0;
  return static_cast<double>(highest_micro_batch(job, 1000));
}

std::vector<Mechanism> mechanisms_of_compute() {
  return {
      {"odd-waves",
       "two waves just miss the ceiling: the best is one whole wave",
       [](DrawnJob& job, Draw& draw, double) {
         const double ceiling = on_one_node(job, draw);
         job.physics.compute.launch_s *= 0.2;
         wave(job, draw.uniform(0.7, 0.95), std::max(2.0, draw.uniform(0.52, 0.7) * ceiling));
         job.physics.compute.saturation = Saturation::roofline;
         job.physics.compute.half = 1.5;
       },
       {}},
      {"odd-stairs",
       "many short waves, and micro batches that are no multiple of 4 or 8 are slow",
       [](DrawnJob& job, Draw& draw, double ceiling) {
         wave(job, draw.uniform(0.5, 0.8), std::max(3.0, ceiling / draw.uniform(3, 7)));
         job.physics.compute.multiple = ceiling > 40 ? 8 : 4;
         job.physics.compute.misfit = draw.uniform(0.08, 0.2);
       },
       {}},
      {"odd-throttle",
       "a device at full power slows down: throughput falls from the middle on",
       [](DrawnJob& job, Draw& draw, double) {
         const double ceiling = on_one_node(job, draw);
         ComputeForm& compute = job.physics.compute;
         compute.half = std::min(compute.half, 0.1 * ceiling);
         compute.launch_s *= 0.2;
         compute.drop_at = std::max(3.0, draw.uniform(0.3, 0.6) * ceiling);
         compute.drop = draw.uniform(0.25, 0.5);
         compute.drop_width = draw.uniform(0.3, 1.5);
       },
       {}},
      {"odd-algorithms",
       "libraries change algorithms with the micro batch, with and without a workspace",
       [](DrawnJob& job, Draw& draw, double ceiling) {
         const auto at = [&](double share) { return static_cast<int64_t>(std::max(2.0, share * ceiling)); };
         const double gain = draw.uniform(1.08, 1.25);
         job.physics.compute.algorithms = {{at(0.25), at(0.5), gain}, {at(0.75), 1 << 20, 1 / draw.uniform(1.05, 1.2)}};
         job.physics.memory.workspaces = {{at(0.25), at(0.5), draw.uniform(0.1, 0.35) * job.device_memory}};
       },
       {}},
  };
}

std::vector<Mechanism> mechanisms_of_memory() {
  return {
      {"odd-padding",
       "samples are padded to the longest, and the allocator fragments",
       [](DrawnJob& job, Draw& draw, double) {
         job.physics.memory.padding = draw.uniform(0.2, 0.45);
         job.physics.memory.fragmentation = draw.uniform(0.08, 0.2);
         job.physics.memory.variety = draw.uniform(0.1, 0.2);
         job.physics.memory.block_bytes = 20 << 20;
       },
       {}},
      {"odd-limit",
       "the script takes fewer samples than fit",
       {},
       [](Surface& surface, Draw& draw, double ceiling) {
         surface.script_limit = std::max<int64_t>(2, static_cast<int64_t>(draw.uniform(0.25, 0.7) * ceiling));
       }},
      {"odd-paging",
       "nearly full memory is paged to the host: slow before it fails",
       {},
       [](Surface& surface, Draw& draw, double) {
         surface.twists.push_back(thrashes_near_full(draw.uniform(0.7, 0.88), draw.uniform(0.4, 1.5)));
       }},
      {"odd-states",
       "8-bit states, tensors that are never freed, constant activations",
       [](DrawnJob& job, Draw& draw, double) {
         job.physics.model.state_bytes = 2;
         job.physics.memory.constant_bytes = draw.uniform(0.15, 0.4) * job.device_memory;
         job.physics.memory.exponent = draw.uniform(0.75, 0.88);
       },
       {}},
  };
}

std::vector<Mechanism> mechanisms_of_engine() {
  return {
      {"odd-congestion",
       "large messages congest the network, small ones cost the host: the best bucket is in the middle",
       [](DrawnJob& job, Draw& draw, double) {
         LinkForm& link = job.physics.link;
         link.ranks = draw.pick<int64_t>({8, 16, 32});
         link.congested_bytes = draw.log_uniform(1e7, 6e7);
         link.congestion = draw.uniform(0.15, 0.4);
         job.physics.bucket_host_s = draw.log_uniform(1e-3, 4e-3);
         job.physics.overlap_cost = draw.uniform(0.1, 0.3);
       },
       {}},
      {"odd-hooks",
       "a host that is too slow: every layer at stage 3 and every bucket costs it",
       [](DrawnJob& job, Draw& draw, double) {
         job.physics.compute.launch_s = job.physics.model.layers * draw.uniform(1e-3, 3e-3);
         job.physics.compute.launch_power = 1;
         job.physics.module_host_s = draw.uniform(1e-3, 4e-3);
         job.physics.bucket_host_s = draw.uniform(1e-3, 5e-3);
         job.physics.stage2_cost = draw.uniform(0.05, 0.2);
       },
       {}},
      {"odd-plateau",
       "a loader inside the step: all large enough micro batches are nearly alike",
       [](DrawnJob& job, Draw& draw, double ceiling) {
         SurfacePoint point;
         point.stage = 2;
         point.micro_batch = static_cast<int64_t>(std::max(2.0, draw.uniform(0.3, 0.6) * ceiling));
         job.physics.data_s = job_truth(job.physics, point).latency_s() / static_cast<double>(point.micro_batch);
         job.physics.memory.fragmentation = 0.05;
       },
       {}},
      {"odd-anything",
       "random smooth functions of stage, buckets, flags and micro batch",
       {},
       [](Surface& surface, Draw& draw, double) {
         surface.twists.push_back(anything(static_cast<uint64_t>(draw.uniform(1, 1e9)), draw.uniform(0.3, 0.6)));
         surface.max_micro_batch = 1024;
       }},
  };
}

}  // namespace

std::vector<Surface> odd_surfaces(uint64_t seed) {
  std::vector<Mechanism> mechanisms;
  for (const auto& some : {mechanisms_of_compute(), mechanisms_of_memory(), mechanisms_of_engine()}) {
    mechanisms.insert(mechanisms.end(), some.begin(), some.end());
  }
  std::vector<Surface> surfaces;
  for (const Mechanism& mechanism : mechanisms) {
    const uint64_t index = surfaces.size();
    Draw draw(seed, kOddStream, index);
    DrawnJob job;
    do {
      job = draw_job(draw);
      const double ceiling = static_cast<double>(highest_micro_batch(job, 1000));
      if (ceiling >= kLeastCeiling && mechanism.bend) mechanism.bend(job, draw, ceiling);
    } while (highest_micro_batch(job, 1000) < kLeastCeiling || !worth_tuning(job, draw));
    const double ceiling = static_cast<double>(highest_micro_batch(job, 1000));
    Surface surface = surface_of(job, draw);
    surface.family = "odd";
    surface.name = mechanism.name;
    surface.about = fmt::format("{}; {}", mechanism.about, surface.about);
    surface.id = mix64(70'000 + seed) + index;
    if (mechanism.finish) mechanism.finish(surface, draw, ceiling);
    surfaces.push_back(std::move(surface));
  }
  return surfaces;
}

}  // namespace dsat::bench
