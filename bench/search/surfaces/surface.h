// A simulated training job: the measurements of every configuration of its space.
//
// Purpose: a searcher is judged by the true speed of the configuration that it hands back, which is known here. A
//   surface is the physics of ZeRO training with the scenario's constants, bent by its twists, plus noise.
// Determinism: everything is a function of configuration, seed, and the number of earlier measurements of the
//   configuration. So all searchers get the same answers.
// Threading: immutable once made. Units: seconds, bytes, elements, samples. Errors: none.
#ifndef DSAT_BENCH_SEARCH_SURFACES_SURFACE_H_
#define DSAT_BENCH_SEARCH_SURFACES_SURFACE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dsat/config/space.h"

namespace dsat::bench {

// The settings of a configuration that a surface uses.
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

// Reads a merged configuration. Absent keys have DeepSpeed's defaults.
SurfacePoint point_of(const Json& config);

// The times and memory of a point, without noise.
struct Truth {
  double forward_s = 0, backward_s = 0, step_s = 0;
  double peak_bytes = 0;      // needed memory; more than the usable memory is an out-of-memory trial
  double reported_bytes = 0;  // the peak in a result; 0: peak_bytes
  double latency_s() const { return forward_s + backward_s + step_s; }
};

// A job on a cluster. Sources of the formulas: docs/bench-search.md.
struct TrainingJob {
  // Model
  double num_params = 1e9;
  double trained_params = 0;  // 0: all
  double layers = 24;
  double flops_per_sample = 6e12;  // forward and backward
  double backward_ratio = 2;       // backward / forward compute; 3 with recomputation
  double activation_bytes = 1e9;   // per sample
  double fixed_bytes = 1e9;
  // Devices
  int64_t gpus = 8;
  int64_t gpus_per_node = 8;
  double device_memory = 40e9;
  double usable_share = 0.97;
  double flop_per_s = 1e14;  // of a large micro batch
  double half_batch = 2;     // micro batch with half of that rate
  double launch_s = 2e-3;    // kernel launches of a forward, a lower bound of its time
  double memory_bytes_s = 1e12;
  // Links
  double node_bytes_s = 1e11, network_bytes_s = 1e10;  // per device
  double message_s = 2e-5;                             // latency of a collective, per doubling of the ranks
  double overlap_share = 0.8;                          // share of compute that can hide communication
  double prefetch_share = 0.7;                         // the same for stage 3's gathering
  double overlap_cost = 0.02;                          // slowdown of compute by overlap, as a share
  // Engine
  double bucket_scale = 1;       // memory of reduce buckets and gathered parameters, relative to the formula
  double stage1_bucket = 0;      // share of the reduce bucket that stage 1 holds with the activations
  double allgather_copy = 0;     // share of the allgather bucket that stages 1 and 2 hold
  double fragmentation = 0.04;   // share of the activations, without contiguous gradients
  double copy_cost = 0.01;       // slowdown of backward by contiguous gradients, as a share
  double broadcast_cost = 0.03;  // slowdown of gathering without allgather_partitions, as a share
  double host_bytes_s = 2e10;    // bandwidth of offload
  double host_update_s = 1e-10;  // update of an offloaded parameter
};

Truth zero_physics(const TrainingJob& job, const SurfacePoint& point);

// A surface's own physics, in place of zero_physics.
using Physics = std::function<Truth(const SurfacePoint&)>;

// Changes the times and the memory of a point.
using Twist = std::function<void(const TrainingJob&, const SurfacePoint&, Truth&)>;

struct SurfaceNoise {
  double forward = 0.005, backward = 0.005, step = 0.005;  // relative standard deviations
  double straggler_chance = 0;                             // per trial
  double straggler_slowdown = 0.2;                         // mean
  double peak = 0.001;                                     // of a reported peak
  double memory = 0;                                       // of the memory that a trial needs
  // If not 0: of the latency, in place of the three phases above. The shares of forward, backward and step then have
  // noise of 1.5 and 3 times this size.
  double trial = 0;
  double interference = 0;  // largest slowdown of a trial beside others
  // Number of steps whose median is a trial's latency; their spread is reported. 0: the latency is one draw.
  int steps = 0;
};

struct Surface {
  std::string name;
  std::string family;  // classic, zero, other, six, jobs, odd, strange-..., held-back zero or held-back other
  std::string about;   // its mechanisms, in one line
  uint64_t id = 0;     // seeds its noise
  TrainingJob job;
  Physics physics;  // empty: zero_physics(job)
  std::vector<Twist> twists;
  SurfaceNoise noise;
  // How many times slower the machine is than the truth, by the study's time; empty: never. It changes no order.
  std::function<double(double now_s)> machine;
  double startup_s = 40;  // time of a trial before its first step
  bool reports_peak = true;
  bool reports_device_memory = true;
  int user_stage = 1;  // stage of the user's own configuration
  bool offload_axis = false;
  std::vector<int> stages{0, 1, 2, 3};
  int64_t max_micro_batch = 4096;  // bound of the search for the optimum
  int64_t script_limit = 0;        // larger micro batches fail in the script; 0: no limit
  Json user_config;                // null: AdamW in fp16

  Truth truth(const SurfacePoint& point) const;
  bool fits(const Truth& truth) const { return truth.peak_bytes <= job.usable_share * job.device_memory; }
  bool beyond_script(const SurfacePoint& point) const { return script_limit > 0 && point.micro_batch > script_limit; }
  // Samples a second over all devices. 0: out of memory, or beyond the script's limit.
  double throughput(const SurfacePoint& point) const;
  double throughput(const SurfacePoint& point, const Truth& truth) const;
  Json base_config() const;
  config::Space space() const;
};

}  // namespace dsat::bench

#endif  // DSAT_BENCH_SEARCH_SURFACES_SURFACE_H_
