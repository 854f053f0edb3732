// Simulated trials: a study whose trials are answered by a function, in virtual time.
//
// Purpose: planning without a cluster, tests and benchmarks. A Surface answers how a configuration performs and how
//   long its trial takes; the study's clock jumps from one event to the next, so that a search of weeks takes seconds.
//   Everything else (profiler, searcher, limits, reorder window, timeouts, journal) is the same as with real trials.
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

// A trial as its surface sees it.
struct SimulatedTrial {
  const Json& config;  // merged and complete; `autotuning.end_profile_step` in a trial of --verify only; for the call
  bool model_info = false;  // the protocol's model-information run instead of a measured one
  int slots = 1;            // devices of the trial
  // For this measurement's noise: made of the study's seed, the configuration's identity and how often it was run
  // before. The same study gives the same noise; a REPEAT measures anew.
  uint64_t seed = 0;
};

// What came of it.
struct SimulatedRun {
  Outcome outcome = Outcome::completed;
  std::string reason;  // one line; empty: there is none
  // completed: canonical metrics; for a model-information run: num_params, trainable_num_params,
  // activation_mem_per_gpu, perhaps largest_layer_params. What is no object of finite numbers is a failed trial.
  Json metrics = Json::object();
  std::optional<uint64_t> peak_bytes;           // of a device
  std::optional<uint64_t> device_memory_bytes;  // of a device, as the trial would report it
  double seconds = 0;                           // from start to end; not negative
};

class Surface {
 public:
  virtual ~Surface() = default;
  // Must depend on nothing but `trial`. If it throws, the study fails.
  virtual SimulatedRun run(const SimulatedTrial& trial) const = 0;
};

// All that a study needs in the place of a command and devices. StudyOptions::simulation.
struct Simulation {
  std::shared_ptr<const Surface> surface;
  std::string name = "simulation";     // names the study where no command does
  Json base_config;                    // used where neither the command nor ds_config gives one
  int slots = 1;                       // how many devices there are; StudyOptions::slots beats it
  bool slots_are_all = true;           // false: StudyOptions::slots may ask for more of them
  std::optional<int> slots_per_trial;  // default: all; StudyOptions::slots_per_trial beats it
  std::vector<std::string> metrics;    // canonical names that the surface gives; empty: all
  // What load_simulation made it from, so that a resumed study can make it again. null: the study cannot be resumed.
  Json source;
  // false: nothing is written anywhere, there is no journal, and StudyResult::dir is empty. For thousands of studies in
  // one process; an Observer sees the trials.
  bool keep = true;
};

// The analytic model of a cluster, from a scenario (docs/simulator.md). `file` stands in messages. Invalid, in one
// line: what is missing, unknown, out of bounds or contradictory.
Result<Simulation> simulate_cluster(const Json& scenario, const std::string& file);

// A replay of recorded trials, from the text of a CSV file (docs/simulator.md). Invalid as above.
Result<Simulation> simulate_trace(const std::string& csv, const std::string& file);

// The CSV text of a study's trials, which simulate_trace replays: `show --csv`.
struct StudyRecord;
std::string trace_of(const StudyRecord& study);

// From a file: recorded trials if it ends in .csv, else a scenario.
Result<Simulation> load_simulation(const std::filesystem::path& file);

}  // namespace dsat::host

#endif  // DSAT_HOST_SIMULATION_H_
