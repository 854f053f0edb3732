// A simulated training job: the measurements of every configuration of its space.
//
// Purpose: a searcher is judged by the true speed of the configuration that it hands back, which is known here. A
//   surface is the scenario's physics, bent by its twists, plus noise.
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

// What everybody may know of a job.
struct TrainingJob {
  double num_params = 1e9;
  double trained_params = 0;       // 0: all
  double flops_per_sample = 6e12;  // forward and backward
  double activation_bytes = 1e9;   // per sample
  int64_t gpus = 8;
  double device_memory = 40e9;
  double usable_share = 0.97;
};

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
  std::string family;  // six, jobs, odd, strange-...
  std::string about;   // its mechanisms, in one line
  uint64_t id = 0;     // seeds its noise
  TrainingJob job;
  Physics physics;
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
