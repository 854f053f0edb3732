// A made-up training job for searchers: memory is a straight line in the micro batch, speed rises with it and levels
// off, and differs by stage and bucket size. Everything is a function of the configuration.
#ifndef DSAT_TESTS_PLUGINS_SURFACE_H_
#define DSAT_TESTS_PLUGINS_SURFACE_H_

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "dsat/config/space.h"
#include "dsat/cost/memory.h"
#include "dsat/testing.h"

namespace dsat::tests {

struct Surface {
  double num_params = 1e8;
  double device_memory = 16e9;
  double fixed_bytes = 5e8;
  double activation_bytes = 2e8;  // per sample
  int64_t world_size = 4;
  bool tells_peak = true;
  std::map<int, double> stage_speed{{0, 1.0}, {1, 1.0}, {2, 0.9}, {3, 0.8}};

  cost::Setup setup(const Json& config) const { return cost::setup_from_config(config, world_size); }

  double peak(const Json& config) const {
    const cost::Setup s = setup(config);
    const cost::ModelSize size{num_params, num_params, 0};
    return cost::model_state_bytes(size, s) + cost::buffer_bytes(size, s) + fixed_bytes +
           activation_bytes * static_cast<double>(s.micro_batch);
  }
  bool fits(const Json& config) const { return peak(config) <= device_memory; }

  // Samples a second: half of the limit at micro batch 8; small buckets cost up to a tenth.
  double throughput(const Json& config) const {
    const cost::Setup s = setup(config);
    const double batch = static_cast<double>(s.micro_batch);
    const double bucket = std::min(1.0, 0.9 + 0.1 * s.reduce_bucket_elements / 5e8);
    return 1000 * stage_speed.at(s.stage) * bucket * batch / (batch + 8);
  }

  testing::Answer answer(const testing::Trial& trial) const {
    if (!fits(trial.config)) return testing::Answer::out_of_memory();
    std::optional<uint64_t> peak_bytes;
    if (tells_peak) peak_bytes = static_cast<uint64_t>(peak(trial.config));
    const double speed = throughput(trial.config);
    const double batch = static_cast<double>(trial.micro_batch() * world_size);
    return testing::Answer::completed({{"throughput", speed}, {"latency", batch * 1e6 / speed}}, peak_bytes);
  }

  testing::Answer model_information(const testing::Trial& trial) const {
    if (!fits(trial.config)) return testing::Answer::out_of_memory();
    return testing::Answer::completed({{"num_params", num_params},
                                       {"trainable_num_params", num_params},
                                       {"activation_mem_per_gpu", activation_bytes * 0.8},
                                       {"device_memory", device_memory},
                                       {"world_size", static_cast<double>(world_size)}});
  }

  // The best throughput of any point of a space, by trying all of them.
  double best_throughput(const Study& study) const;
};

// Does this trial only measure the model's size?
inline bool is_model_information(const testing::Trial& trial) {
  return trial.config.value("/autotuning/model_info/profile"_json_pointer, false);
}

inline Json base_config() {
  return {{"optimizer", {{"type", "Adam"}}}, {"fp16", {{"enabled", true}}}, {"zero_optimization", {{"stage", 1}}}};
}

inline config::Axis bucket_axis() { return {"zero_optimization.reduce_bucket_size", {5000000, 50000000, 500000000}}; }

inline config::Space small_space(const std::vector<int>& stages) {
  config::Space space;
  for (const int stage : stages) {
    config::StageSpace of{stage, {bucket_axis()}};
    if (stage >= 2) of.axes.push_back({"zero_optimization.overlap_comm", {true, false}});
    space.stages.push_back(of);
  }
  return space;
}

// A study of the surface, as the host hands it to a searcher after the profile.
inline Study make_study(const Surface& surface, const config::Space& space) {
  Study study;
  study.seed = 42;
  study.metric = "throughput";
  study.maximise = true;
  for (const config::StageSpace& stage : space.stages) study.zero_stages.push_back(stage.stage);
  study.base_config = base_config();
  study.space = config::to_json(space);
  study.limits.max_trials = 50;
  study.limits.max_concurrent_trials = 1;
  study.limits.slots = surface.world_size;
  study.limits.slots_per_trial = surface.world_size;
  study.limits.data_parallel_size = surface.world_size;
  study.device_memory_bytes = static_cast<uint64_t>(surface.device_memory);
  const Json activation{{"value", surface.activation_bytes},
                        {"low", 0.9 * surface.activation_bytes},
                        {"high", 1.1 * surface.activation_bytes}};
  study.profile = {{"schema", 1},
                   {"num_params", surface.num_params},
                   {"trainable_num_params", surface.num_params},
                   {"device_memory_bytes", surface.device_memory},
                   {"world_size", surface.world_size},
                   {"activation_bytes_per_sample", activation}};
  study.observations = Json::array();
  return study;
}

inline double Surface::best_throughput(const Study& study) const {
  double best = 0;
  const config::Space space = config::space_from_json(study.space);
  for (const config::StageSpace& stage : space.stages) {
    std::vector<size_t> choice(stage.axes.size());
    for (;;) {
      for (int64_t micro_batch = space.min_micro_batch; micro_batch <= space.max_micro_batch.value_or(4096);
           ++micro_batch) {
        if (!space.allows_micro_batch(micro_batch)) continue;
        Json config = study.base_config;
        testing::merge(config, config::overrides(stage, choice, micro_batch));
        if (!fits(config)) break;
        best = std::max(best, throughput(config));
      }
      size_t axis = 0;
      while (axis < choice.size() && ++choice[axis] == stage.axes[axis].values.size()) choice[axis++] = 0;
      if (axis == choice.size()) break;
    }
  }
  return best;
}

}  // namespace dsat::tests

#endif  // DSAT_TESTS_PLUGINS_SURFACE_H_
