// The numbers are those of a small model on eight devices of 16 GiB. They only decide where memory ends.
#include "validate/practice.h"

#include <algorithm>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "dsat/config/space.h"
#include "dsat/config/world.h"

namespace dsat::host {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr double kDeviceBytes = 16 * kGiB;

Json interval(double value) { return {{"value", value}, {"low", 0.9 * value}, {"high", 1.1 * value}}; }

// A strategy may ask for any stage and any micro batch; an impossible one takes as much memory as the smallest.
double state_bytes(int stage) { return kGiB * 8 / (1.0 + std::max(0, stage)); }
double peak_bytes(const testing::Trial& trial) {
  return state_bytes(trial.stage()) + 0.4 * kGiB * static_cast<double>(std::max<int64_t>(0, trial.micro_batch()));
}

Json profile() {
  Json stages = Json::array();
  for (int stage = 0; stage <= 3; ++stage) {
    stages.push_back({{"stage", stage},
                      {"model_state_bytes", interval(state_bytes(stage))},
                      {"max_micro_batch", interval((kDeviceBytes - state_bytes(stage)) / (0.4 * kGiB))}});
  }
  return {{"schema", 1},
          {"num_params", 500'000'000},
          {"trainable_num_params", 500'000'000},
          {"device_memory_bytes", static_cast<int64_t>(kDeviceBytes)},
          {"world_size", 8},
          {"activation_bytes_per_sample", interval(0.4 * kGiB)},
          {"fixed_bytes", interval(0.2 * kGiB)},
          {"stages", std::move(stages)},
          {"trials", Json::array()}};
}

testing::Answer completed(const testing::Trial& trial) {
  const auto samples = static_cast<double>(std::max<int64_t>(1, trial.micro_batch()));
  const double speed = 1000 * samples / (samples + 6) * (1 + 0.05 * trial.stage());
  const double latency_us = 8 * samples / speed * 1e6;
  std::map<std::string, double> metrics{{"throughput", speed},          {"latency", latency_us},
                                        {"FLOPS_per_gpu", speed * 3e9}, {"forward", latency_us * 0.3},
                                        {"backward", latency_us * 0.6}, {"step", latency_us * 0.1}};
  if (testing::rules::measures_the_model(trial.config)) {
    metrics = {{"num_params", 5e8}, {"trainable_num_params", 5e8}, {"activation_mem_per_gpu", 0.4 * kGiB}};
  }
  return testing::Answer::completed(std::move(metrics), static_cast<uint64_t>(peak_bytes(trial)));
}

}  // namespace

dsat::Study practice_study(const PluginInfo& plugin, int max_trials, int concurrent) {
  config::Space space;
  const std::vector<int> stages = plugin.study.value("zero_stages", std::vector<int>{1, 2, 3});
  for (const int stage : stages) {
    space.stages.push_back({stage,
                            {{"zero_optimization.overlap_comm", {true, false}},
                             {"zero_optimization.reduce_bucket_size", {50'000'000, 500'000'000}}}});
  }
  Study study;
  study.seed = 42;
  study.metric = "throughput";
  study.zero_stages = stages;
  study.base_config = {{"train_micro_batch_size_per_gpu", 1},
                       {"gradient_accumulation_steps", 1},
                       {"train_batch_size", 8},
                       {"zero_optimization", {{"stage", stages.front()}}}};
  study.space = config::to_json(space);
  study.limits.max_trials = max_trials;
  study.limits.max_concurrent_trials = concurrent;
  study.limits.open_trials = concurrent + 2;
  study.limits.slots = 8;
  study.limits.slots_per_trial = 8;
  study.limits.data_parallel_size = 8;
  study.device_memory_bytes = static_cast<uint64_t>(kDeviceBytes);
  if (plugin.kind == PluginKind::searcher) study.profile = profile();
  study.observations = Json::array();
  return study;
}

// Decides as host/src/study/state/admission.cc, for a study whose trials all have the same devices.
std::string why_refused(const dsat::Study& study, const Json& overrides) {
  try {
    Json merged = study.base_config;
    config::overwrite(merged, config::read_overrides(study.base_config, overrides));
    config::keep_only_world(merged);
    const config::GivenBatchSizes given = config::read_batch_sizes(merged);
    config::write_batch_sizes(
        merged, config::trial_batch_sizes(given.micro_batch.value_or(1), given.accumulation.value_or(1),
                                          config::data_parallel_size_of(merged, study.limits.data_parallel_size),
                                          /*global_batch=*/std::nullopt));
    config::RuleOptions rules;
    rules.world_size = study.limits.slots_per_trial;
    return config::broken_rule(merged, rules).value_or("");
  } catch (const std::exception& error) {
    return error.what();
  }
}

testing::Answer practice_answer(const testing::Trial& trial) {
  if (peak_bytes(trial) > kDeviceBytes) {
    return testing::Answer::out_of_memory(static_cast<uint64_t>(kDeviceBytes));
  }
  return completed(trial);
}

testing::Answer troubled_answer(const testing::Trial& trial) {
  switch (trial.id % 9) {
    case 0:
      return completed(trial);
    case 1:
      return testing::Answer::out_of_memory();
    case 2:
      return testing::Answer::failed("RuntimeError: it was not to be");
    case 3:
      return {Outcome::timed_out, {}, std::nullopt, "no progress for 10 m"};
    case 4:
      return {Outcome::invalid_config, {}, std::nullopt, "a rule of DeepSpeed's"};
    case 5:
      return {Outcome::stopped, {}, std::nullopt, "stopped"};
    case 6:
      return {Outcome::lost, {}, std::nullopt, "the node died"};
    case 7:
      return {Outcome::diverged, {}, std::nullopt, "the loss is nan at step 5"};
    default:
      return testing::Answer::completed({}, std::nullopt);  // without any metric
  }
}

}  // namespace dsat::host
