// Simulated trials: a function gives the results of a study's trials, in virtual time.
//
// Purpose: planning without a cluster, tests and benchmarks. A Surface gives the performance of a configuration and the
//   duration of its trial. The study's clock jumps from event to event, so that a search of weeks takes seconds.
//   Profiler, searcher, limits, reorder window, timeouts and journal are the same as with real trials.
// Threading: a study calls its surface on its own control thread, one trial at a time. A surface that several studies
//   share must be safe to call from all of them at once.
// Units: seconds, bytes, and the canonical metrics (forward, backward, step and latency in microseconds, throughput in
//   samples a second over all devices, FLOPS_per_gpu in FLOP/s).
#ifndef DSAT_HOST_SIMULATION_H_
#define DSAT_HOST_SIMULATION_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsat/error.h"
#include "dsat/host/record.h"
#include "dsat/host/status.h"

namespace dsat::host {

// A trial as the input of a surface.
struct SimulatedTrial {
  const Json& config;  // merged and complete, valid during the call; has `autotuning.end_profile_step` under --verify
  bool model_info = false;  // true: the protocol's model-information run, which measures no step
  int slots = 1;            // devices of the trial
  // The seed of the noise, from the study's seed, the configuration's identity and the number of its earlier runs. The
  // same study gives the same noise; a repeated trial gets new noise.
  uint64_t seed = 0;
};

struct SimulatedRun {
  Outcome outcome = Outcome::completed;
  std::string reason;  // one line, or empty
  // Canonical metrics of a completed trial; for a model-information run num_params, trainable_num_params,
  // activation_mem_per_gpu and perhaps largest_layer_params. Unless this is an object of finite numbers, the trial has
  // failed.
  Json metrics = Json::object();
  Curve curve;                                  // of a measured run; empty: the trial reports nothing
  std::optional<uint64_t> peak_bytes;           // of a device
  std::optional<uint64_t> device_memory_bytes;  // of a device, as the trial would report it
  double seconds = 0;                           // from start to end; not negative
};

class Surface {
 public:
  virtual ~Surface() = default;
  // The result must depend only on `trial`. If run() throws, the study fails.
  virtual SimulatedRun run(const SimulatedTrial& trial) const = 0;
};

// Takes the place of a study's command and devices: StudyOptions::simulation.
struct Simulation {
  std::shared_ptr<const Surface> surface;
  std::string name = "simulation";     // name of a study without a command
  Json base_config;                    // used if neither the command nor ds_config gives one
  int slots = 1;                       // number of devices; StudyOptions::slots beats it
  bool slots_are_all = true;           // false: StudyOptions::slots may ask for more devices
  std::optional<int> slots_per_trial;  // default: all; StudyOptions::slots_per_trial beats it
  std::vector<std::string> metrics;    // canonical names that the surface gives; empty: all
  // The input of load_simulation, from which a resumed study makes the simulation again. null: it cannot be resumed.
  Json source;
  // false: nothing is written, there is no journal, and StudyResult::dir is empty; an Observer still sees the trials.
  // This is for thousands of studies in one process.
  bool keep = true;
};

// The analytic model of a cluster, from a scenario (docs/simulator.md). Messages name `file`. Invalid: one line that
// names the value that is missing, unknown, out of bounds or contradictory.
Result<Simulation> simulate_cluster(const Json& scenario, const std::string& file);

// A replay of recorded trials, from the text of a CSV file (docs/simulator.md). Invalid as above.
Result<Simulation> simulate_trace(const std::string& csv, const std::string& file);

// The CSV text of a study's trials, which simulate_trace replays: `show --csv`.
struct StudyRecord;
std::string trace_of(const StudyRecord& study);

// Loads a file: recorded trials if its name ends in .csv, else a scenario. Where no file has the name, it may be that
// of a scenario which comes with dsat: "8-gpus-a100-gpt2-xl".
Result<Simulation> load_simulation(const std::filesystem::path& file);

}  // namespace dsat::host

#endif  // DSAT_HOST_SIMULATION_H_
