// How many trials a search loses to something that always fails: a stage, a value, a pair of values, a size,
// everything. Each scenario runs with each searcher, over a model whose memory and speed are simple.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "host/sim/surfaces.h"

namespace dsat::host {
namespace {

using ::testing::HasSubstr;

constexpr int kTrials = 30;

// The value of a key; null: it is not given.
Json at(const Json& config, const std::string& key) {
  const Json* value = config::find(config, key);
  return value == nullptr ? Json() : *value;
}
int stage_of(const Json& config) { return config::zero_stage(config); }
Json zero(const Json& config, const std::string& key) { return at(config, "zero_optimization." + key); }

// A model of a billion parameters on devices of 80 GB, with a share of its states for each stage.
SimulatedRun usual(const SimulatedTrial& trial) {
  SimulatedRun run;
  run.device_memory_bytes = 80'000'000'000;
  run.seconds = 10;
  if (trial.model_info) {
    run.metrics = {{"num_params", 1e9}, {"trainable_num_params", 1e9}, {"activation_mem_per_gpu", 1e9}};
    return run;
  }
  const auto samples = static_cast<double>(samples_of(trial.config));
  const double states[] = {26e9, 25e9, 24e9, 23e9};  // on one device nothing is divided
  run.peak_bytes = static_cast<uint64_t>(states[stage_of(trial.config)] + 1e9 * samples);
  if (*run.peak_bytes > 80'000'000'000) {
    run = SimulatedRun();
    run.device_memory_bytes = 80'000'000'000;
    run.outcome = Outcome::out_of_memory;
    run.reason = "out of memory";
    run.seconds = 2;
    return run;
  }
  const double bucket = zero(trial.config, "reduce_bucket_size").is_number()
                            ? zero(trial.config, "reduce_bucket_size").get<double>()
                            : 5e8;
  const double overlap = zero(trial.config, "overlap_comm") == true ? 0.9 : 1;
  const double latency_us = 1e5 * (1 + 0.1 * stage_of(trial.config) * overlap + 1e7 / (bucket + 1e7)) + 1e4 * samples;
  run.metrics = {{"latency", latency_us},
                 {"throughput", trial.config.at(config::kTrainBatchKey).get<double>() * 1e6 / latency_us}};
  return run;
}

SimulatedRun failure(const std::string& reason, Outcome outcome = Outcome::failed) {
  SimulatedRun run;
  run.outcome = outcome;
  run.reason = reason;
  run.seconds = 5;
  run.device_memory_bytes = 80'000'000'000;
  return run;
}

constexpr const char* kNoMemory = "CUDA out of memory";

using Rule = std::function<std::string(const SimulatedTrial&)>;  // why a trial fails; empty: it does not

struct Scenario {
  std::string name;
  Rule fails;  // for want of memory if the reason says so
  int culprits = 1;
  Json config = {{"train_micro_batch_size_per_gpu", 4}, {"zero_optimization", {{"stage", 2}}}};
  bool nothing_works = false;
  std::vector<std::string> reasons = {};  // of a study without a best
};

Json with(Json config, const std::string& key, Json value) {
  config::set(config, key, std::move(value));
  return config;
}

std::vector<Scenario> scenarios() {
  const Json own = Scenario().config;
  const Json offload = with(own, "zero_optimization.offload_optimizer.device", {"cpu", "none"});
  const auto when = [](const std::string& text, std::function<bool(const Json&)> is) -> Rule {
    return [text, is = std::move(is)](const SimulatedTrial& trial) {
      return !trial.model_info && is(trial.config) ? text : "";
    };
  };
  const auto stage = [](int wanted) { return [wanted](const Json& config) { return stage_of(config) == wanted; }; };
  const auto value = [](std::string key, Json wanted) {
    return [key = "zero_optimization." + key, wanted = std::move(wanted)](const Json& config) {
      return at(config, key) == wanted;
    };
  };
  const auto both = [](std::function<bool(const Json&)> a, std::function<bool(const Json&)> b) {
    return [a = std::move(a), b = std::move(b)](const Json& config) { return a(config) && b(config); };
  };
  const auto sum = [](Rule a, Rule b) -> Rule {
    return [a = std::move(a), b = std::move(b)](const SimulatedTrial& trial) {
      const std::string first = a(trial);
      return first.empty() ? b(trial) : first;
    };
  };
  std::vector<Scenario> all{
      {"own_stage", when("RuntimeError: stage 2 is broken", stage(2))},
      {"stage_1", when("RuntimeError: stage 1 is broken", stage(1))},
      {"stage_3", when("RuntimeError: stage 3 is broken", stage(3))},
      {"two_stages_one_text", sum(when("RuntimeError: broken", stage(1)), when("RuntimeError: broken", stage(3))), 2},
      {"two_stages_two_texts", sum(when("OSError: one", stage(1)), when("ValueError: three", stage(3))), 2},
      {"flag", when("RuntimeError: no overlap", value("overlap_comm", true))},
      {"other_flag", when("RuntimeError: scatter", value("reduce_scatter", false))},
      {"bucket", when("RuntimeError: bucket", value("reduce_bucket_size", 1'000'000))},
      {"stage_3_value", when("RuntimeError: prefetch", value("stage3_prefetch_bucket_size", 500'000'000))},
      {"own_value", when("ImportError: cpu_adam", value("offload_optimizer.device", "cpu")), 1, offload},
      {"other_value", when("ImportError: cpu_adam", value("offload_optimizer.device", "cpu")), 1,
       with(own, "zero_optimization.offload_optimizer.device", {"none", "cpu"})},
      {"value_of_stage_3", when("RuntimeError: both", both(stage(3), value("contiguous_gradients", false)))},
      {"pair", when("RuntimeError: pair", both(value("overlap_comm", true), value("reduce_scatter", true)))},
      {"value_and_stage", sum(when("OSError: a", stage(3)), when("OSError: a", value("reduce_scatter", false))), 2},
      {"size", when("IndexError: 20 samples", [](const Json& config) { return samples_of(config) > 20; })},
      {"text_with_numbers",
       [](const SimulatedTrial& trial) {
         const bool fails = !trial.model_info && stage_of(trial.config) == 3;
         return fails ? "256 != 4 * 8 * " + std::to_string(samples_of(trial.config)) : std::string();
       }},
      {"everything", when("RuntimeError: typo", [](const Json&) { return true; }), 1, own, true},
      {"everything_from_the_start", [](const SimulatedTrial&) { return "RuntimeError: typo"; }, 1, own, true},
      {"own_stage_from_the_start",
       [](const SimulatedTrial& trial) { return stage_of(trial.config) == 2 ? "RuntimeError: stage 2" : ""; }},
      {"own_value_from_the_start",
       [](const SimulatedTrial& trial) {
         return zero(trial.config, "offload_optimizer.device") == "cpu" ? "ImportError: cpu_adam" : "";
       },
       1, offload},
      {"no_memory", when(kNoMemory, [](const Json&) { return true; }), 3, own, true, {"nothing fits", "offload"}},
      {"a_stage_without_memory", when(kNoMemory, stage(1))},
      {"failures_beside_no_memory",
       sum(when("RuntimeError: broken", stage(2)), when(kNoMemory, [](const Json&) { return true; })),
       4,
       own,
       true,
       {"nothing fits", "stage 2 always failed", "RuntimeError: broken"}},
      {"every_stage",
       [](const SimulatedTrial& trial) {
         return trial.model_info ? "" : "RuntimeError: stage " + std::string(1, "abcd"[stage_of(trial.config)]);
       },
       4,
       own,
       true,
       {"something that always failed", "RuntimeError: stage b", "RuntimeError: stage c", "RuntimeError: stage d"}},
      {"every_value",
       [](const SimulatedTrial& trial) {
         if (trial.model_info) return "";
         return zero(trial.config, "offload_optimizer.device") == "cpu" ? "ImportError: cpu_adam" : "OSError: no space";
       },
       2,
       offload,
       true,
       {"something that always failed", "ImportError: cpu_adam", "OSError: no space"}},
  };
  return all;
}

StudyOptions options_of(const Scenario& scenario, const std::string& searcher) {
  StudyOptions options = options_for([scenario](const SimulatedTrial& trial) {
    const std::string reason = scenario.fails(trial);
    if (reason.empty()) return usual(trial);
    return failure(reason, reason == kNoMemory ? Outcome::out_of_memory : Outcome::failed);
  });
  options.searcher.plugin = std::string(DSAT_PLUGINS) + "/lib" + searcher + ".so";
  options.simulation->base_config = scenario.config;
  options.max_trials = kTrials;
  return options;
}

class LostTrials : public ::testing::TestWithParam<std::tuple<size_t, std::string>> {
 protected:
  Scenario scenario_ = scenarios()[std::get<0>(GetParam())];
  std::string searcher_ = std::get<1>(GetParam());
};

TEST_P(LostTrials, AreFewForEachCulprit) {
  Recorder seen;
  const StudyResult result = run(options_of(scenario_, searcher_), seen);
  int lost = 0, trained = 0, refused = 0;
  std::string ends;
  for (const TrialRecord& trial : seen.ended) {
    lost += trial.outcome == Outcome::failed || trial.reason == kNoMemory ? 1 : 0;
    trained += trial.outcome == Outcome::completed ? 1 : 0;
    refused += trial.outcome == Outcome::invalid_config ? 1 : 0;
    if (trial.outcome != Outcome::completed) {
      ends += std::to_string(trial.id) + " " + to_string(*trial.outcome) + " " +
              at(trial.config, "zero_optimization").dump() + " " + std::to_string(samples_of(trial.config)) + " " +
              trial.reason + "\n";
    }
  }
  if (ends.size() > 3000) ends.resize(3000);
  EXPECT_LE(lost, 3 * scenario_.culprits) << ends;
  if (scenario_.nothing_works) {
    EXPECT_LE(refused, 100) << "the search ends once nothing is left";
  }
  for (const std::string& reason : scenario_.reasons) EXPECT_THAT(result.reason, HasSubstr(reason));
  EXPECT_EQ(result.status, scenario_.nothing_works ? StudyStatus::no_best : StudyStatus::completed) << result.reason;
  if (!scenario_.nothing_works) {
    EXPECT_GE(trained, 10) << result.reason << "\n" << ends;
  }
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<size_t, std::string>>& info) {
  return scenarios()[std::get<0>(info.param)].name + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(EachSearcher, LostTrials,
                         ::testing::Combine(::testing::Range(size_t{0}, scenarios().size()),
                                            ::testing::Values("asha", "binary", "random", "grid", "guided")),
                         name_of);

}  // namespace
}  // namespace dsat::host
