// A simulated training job: what every configuration of its space would measure.
//
// Purpose: searchers are judged by the true speed of what they hand back, and the truth is known here. A surface is the
//   physics of ZeRO training with the scenario's constants, bent by the scenario's twists; noise comes on top.
// Determinism: everything is a function of configuration, seed, and how often the configuration was measured. Two
//   searchers that ask the same under the same seed get the same answer.
// Threading: immutable once made. Units: seconds, bytes, elements, samples. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_SURFACE_H_
#define DSAT_BENCH_SEARCH_SURFACES_SURFACE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dsat/config/space.h"

namespace dsat::bench {

// The settings of a configuration that a surface reads.
struct SurfacePoint {
  int stage = 0;
  int64_t micro_batch = 1;
  double reduce_bucket = 5e8;  // elements; DeepSpeed's defaults
  double allgather_bucket = 5e8;
  double prefetch_bucket = 5e7;
  bool overlap = false;
  bool reduce_scatter = true;
  bool contiguous = true;
  bool allgather_partitions = true;
  bool offload_optimizer = false;
  double persistence_threshold = 1e5, reuse_distance = 1e9, live_parameters = 1e9, sub_group = 1e9;
};

// Reads a merged configuration; absent keys take DeepSpeed's defaults.
SurfacePoint point_of(const Json& config);

// What a point takes, without noise.
struct Truth {
  double forward_s = 0, backward_s = 0, step_s = 0;
  double peak_bytes = 0;      // needed; more than the usable memory is an out-of-memory trial
  double reported_bytes = 0;  // what a result reports as its peak; 0: peak_bytes
  double latency_s() const { return forward_s + backward_s + step_s; }
};

// A job on a cluster. Sources of the formulas: docs/bench-search.md.
struct TrainingJob {
  // Model
  double num_params = 1e9;
  double trained_params = 0;  // 0: all of them
  double layers = 24;
  double flops_per_sample = 6e12;  // forward and backward
  double backward_ratio = 2;       // of backward to forward compute; 3 with recomputation
  double activation_bytes = 1e9;   // per sample
  double fixed_bytes = 1e9;
  // Devices
  int64_t gpus = 8;
  int64_t gpus_per_node = 8;
  double device_memory = 40e9;
  double usable_share = 0.97;
  double flop_per_s = 1e14;  // reached by a large micro batch
  double half_batch = 2;     // micro batch at which half of it is reached
  double launch_s = 2e-3;    // kernel launches of a forward: its floor
  double memory_bytes_s = 1e12;
  // Links
  double node_bytes_s = 1e11, network_bytes_s = 1e10;  // per device
  double message_s = 2e-5;                             // a collective's latency, per doubling of the ranks
  double overlap_share = 0.8;                          // of compute that can hide communication
  double prefetch_share = 0.7;                         // the same for stage 3's gathering
  double overlap_cost = 0.02;                          // by which overlap slows compute
  // Engine
  double bucket_scale = 1;       // memory of reduce buckets and gathered parameters, against the formula's
  double stage1_bucket = 0;      // share of the reduce bucket that stage 1 holds while activations are there
  double allgather_copy = 0;     // share of the allgather bucket that stages 1 and 2 hold
  double fragmentation = 0.04;   // of the activations, without contiguous gradients
  double copy_cost = 0.01;       // contiguous gradients: backward slows by
  double broadcast_cost = 0.03;  // without allgather_partitions: the gathering slows by
  double host_bytes_s = 2e10;    // offload: traffic to the host, and
  double host_update_s = 1e-10;  // a parameter's update there
};

Truth zero_physics(const TrainingJob& job, const SurfacePoint& point);

// Physics of a surface's own, in place of zero_physics.
using Physics = std::function<Truth(const SurfacePoint&)>;

// Bends the physics: changes times and memory of a point.
using Twist = std::function<void(const TrainingJob&, const SurfacePoint&, Truth&)>;

struct SurfaceNoise {
  double forward = 0.005, backward = 0.005, step = 0.005;  // relative standard deviations
  double straggler_chance = 0;                             // of a trial
  double straggler_slowdown = 0.2;                         // its mean
  double peak = 0.001;                                     // of a reported peak
  double memory = 0;                                       // of the memory that is really there, trial by trial
  // The latency's: not 0 takes the place of the three phases above. The shares of forward, backward and step in it are
  // then 1.5 and 3 times as noisy on their own.
  double trial = 0;
  double interference = 0;  // trials beside others are slower by up to this
  // A trial's latency is the median of so many: they scatter, and their spread is reported. 0: it is one draw.
  int steps = 0;
};

struct Surface {
  std::string name;
  std::string family;  // classic, zero, other, six, jobs, odd, held-back zero or held-back other
  std::string about;   // its mechanisms, in a line
  uint64_t id = 0;     // its own noise
  TrainingJob job;
  Physics physics;  // empty: zero_physics(job)
  std::vector<Twist> twists;
  SurfaceNoise noise;
  double startup_s = 40;  // of a trial, before its first step
  bool reports_peak = true;
  bool reports_device_memory = true;
  int user_stage = 1;  // in the user's own configuration
  bool offload_axis = false;
  std::vector<int> stages{0, 1, 2, 3};
  int64_t max_micro_batch = 4096;  // the optimum is looked for up to here
  int64_t script_limit = 0;        // a larger micro batch fails in the script, with memory left; 0: none
  Json user_config;                // null: AdamW in fp16

  Truth truth(const SurfacePoint& point) const;
  bool fits(const Truth& truth) const { return truth.peak_bytes <= job.usable_share * job.device_memory; }
  bool beyond_script(const SurfacePoint& point) const { return script_limit > 0 && point.micro_batch > script_limit; }
  // Samples a second over all devices; 0: out of memory, or beyond what the script takes.
  double throughput(const SurfacePoint& point) const;
  double throughput(const SurfacePoint& point, const Truth& truth) const;
  Json base_config() const;
  config::Space space() const;
};

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_SURFACE_H_
