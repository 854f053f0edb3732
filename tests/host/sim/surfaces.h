// Surfaces for tests, and studies over them that write nothing.
#ifndef DSAT_TESTS_HOST_SIM_SURFACES_H_
#define DSAT_TESTS_HOST_SIM_SURFACES_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dsat/config/batch.h"
#include "dsat/host/study.h"

namespace dsat::host {

inline int64_t samples_of(const Json& config) { return config.value(config::kMicroBatchKey, int64_t{0}); }

// A surface made of a function.
class FunctionSurface : public Surface {
 public:
  using Function = std::function<SimulatedRun(const SimulatedTrial&)>;
  explicit FunctionSurface(Function function) : function_(std::move(function)) {}
  SimulatedRun run(const SimulatedTrial& trial) const override { return function_(trial); }

 private:
  Function function_;
};

// A model of 1,000 parameters on devices of 1 MB; throughput grows with the micro batch, and 100 samples fit.
inline SimulatedRun small_model(const SimulatedTrial& trial) {
  SimulatedRun run;
  run.device_memory_bytes = 1000000;
  run.seconds = 10;
  if (trial.model_info) {
    run.metrics = {{"num_params", 1000}, {"trainable_num_params", 1000}, {"activation_mem_per_gpu", 9000}};
    return run;
  }
  const auto samples = static_cast<double>(samples_of(trial.config));
  run.peak_bytes = static_cast<uint64_t>(50000 + 9000 * samples);
  if (*run.peak_bytes > 1000000) {
    run.outcome = Outcome::out_of_memory;
    run.reason = "out of memory";
    run.seconds = 2;
    return run;
  }
  const double latency_us = 1000 + 10 * samples;
  const auto train_batch = trial.config.at(config::kTrainBatchKey).get<double>();
  run.metrics = {{"latency", latency_us}, {"throughput", train_batch * 1e6 / latency_us}};
  return run;
}

// A study of `function` with asha that keeps nothing.
inline StudyOptions options_for(FunctionSurface::Function function) {
  StudyOptions options;
  options.isolation = Isolation::none;
  options.searcher = {std::string(DSAT_PLUGINS) + "/libasha.so", Json::object()};
  options.profiler = {std::string(DSAT_PLUGINS) + "/libprofiler.so", Json::object()};
  options.metric = "throughput";
  Simulation simulation;
  simulation.surface = std::make_shared<FunctionSurface>(std::move(function));
  simulation.base_config = {{"train_micro_batch_size_per_gpu", 1}};
  simulation.keep = false;
  options.simulation = std::move(simulation);
  return options;
}

// Keeps all that happened.
class Recorder : public Observer {
 public:
  void on_log(Severity severity, std::string_view message) override {
    if (severity >= Severity::warning) warnings.emplace_back(message);
  }
  void on_trial_ended(const TrialRecord& trial) override { ended.push_back(trial); }
  std::vector<std::string> warnings;
  std::vector<TrialRecord> ended;
};

// Runs a study to its end; one that cannot be made gives its message as the reason.
inline StudyResult run(const StudyOptions& options, Recorder& seen) {
  Result<std::unique_ptr<Study>> study = Study::create(options);
  if (study.ok()) return study.value()->run(seen);
  StudyResult result;
  result.reason = study.status().message();
  return result;
}

}  // namespace dsat::host

#endif  // DSAT_TESTS_HOST_SIM_SURFACES_H_
