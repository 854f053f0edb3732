// What the keys of an experiment file become. Their refusals are in tests/e2e/test_experiment_form.py.
#include "determined/read_experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/temp_dir.h"

namespace dsat::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
namespace fs = std::filesystem;

class ExperimentFile : public ::testing::Test {
 protected:
  ExperimentFile() {
    fs::create_directories(dir_ / "model");
    write("model/ds.json", R"({"train_batch_size": 8})");
    request_.file = dir_ / "e.yaml";
    request_.model_dir = dir_ / "model";
    request_.environment = {"PATH=" + dir_.string()};
  }

  void write(const std::string& name, const std::string& text) { write_text(dir_ / name, text); }
  void install(const std::string& program) { write_program(dir_ / program, "#!/bin/sh\n"); }
  // The experiment of these keys beside the two that every experiment needs.
  Experiment read(const std::string& keys, const std::string& hyperparameters = "deepspeed_config: ds.json") {
    write("e.yaml", "entrypoint: python3 t.py\nhyperparameters: {" + hyperparameters + "}\n" + keys);
    return read_experiment(request_);
  }
  std::string complaint(const std::string& keys) {
    return error_of([&] { read(keys); });
  }

  const TempDir temp_;
  const fs::path dir_ = temp_.path();
  ExperimentRequest request_;
};

TEST_F(ExperimentFile, NeedsAnEntrypointAndAConfiguration) {
  const Experiment experiment = read("");
  EXPECT_THAT(experiment.command, ElementsAre("python3", "t.py"));
  EXPECT_EQ(experiment.ds_config, dir_ / "model" / "ds.json");
  EXPECT_EQ(experiment.slots_per_trial, 1);
  EXPECT_THAT(experiment.notices, ElementsAre());
  EXPECT_EQ(experiment.document["entrypoint"], "python3 t.py");
}

TEST_F(ExperimentFile, TheEntrypointsOwnConfigurationIsEnough) {
  write("e.yaml", "entrypoint: python3 t.py --deepspeed ./ds.json\n");
  EXPECT_EQ(read_experiment(request_).ds_config, dir_ / "model" / "./ds.json");
}

TEST_F(ExperimentFile, AConfigurationMayBeIncludedOrWrittenInPlace) {
  fs::create_directories(dir_ / "configs");
  write("configs/other.json", "{}");
  request_.includes = {dir_ / "configs"};
  EXPECT_EQ(read("", "deepspeed_config: configs/other.json").ds_config, dir_ / "configs" / "other.json");
  request_.includes = {dir_ / "configs" / "other.json"};
  EXPECT_EQ(read("", "deepspeed_config: other.json").ds_config, dir_ / "configs" / "other.json");

  const std::string inlined = "ds_config: {fp16: {enabled: true}}, overwrite_deepspeed_args: {fp16: {enabled: false}}";
  const Experiment experiment = read("", inlined);
  EXPECT_EQ(experiment.ds_config, std::nullopt);
  EXPECT_EQ(experiment.config_overwrites, Json::parse(R"({"fp16": {"enabled": false}})"));
}

TEST_F(ExperimentFile, DsConfigMayBeAPath) {
  EXPECT_EQ(read("", "ds_config: ds.json").ds_config, dir_ / "model" / "ds.json");
}

TEST_F(ExperimentFile, OverwritesMayHaveDottedKeysAndTheTypeInCapitals) {
  const auto overwrites = [&](const std::string& keys) {
    return read("", "deepspeed_config: ds.json, overwrite_deepspeed_args: {" + keys + "}").config_overwrites;
  };
  EXPECT_EQ(overwrites("zero_optimization.stage: 2, zero_optimization: {overlap_comm: true}, gradient_clipping: 1.0"),
            Json::parse(R"({"zero_optimization": {"stage": 2, "overlap_comm": true}, "gradient_clipping": 1.0})"));
  EXPECT_EQ(overwrites("zero_optimization.stage: {type: categorical, vals: [1, 2]}"),
            Json::parse(R"({"zero_optimization": {"stage": [1, 2]}})"));
  EXPECT_EQ(overwrites("optimizer: {TYPE: AdamW, params: {lr: 0.1}}"),
            Json::parse(R"({"optimizer": {"params": {"lr": 0.1}, "type": "AdamW"}})"));
  EXPECT_EQ(overwrites("optimizer: {TYPE: AdamW, type: Adam}"), Json::parse(R"({"optimizer": {"type": "Adam"}})"));
  EXPECT_THAT(error_of([&] { overwrites("zero_optimization.stage: 2, zero_optimization: {stage: 1}"); }),
              AllOf(HasSubstr("zero_optimization.stage is 2"), HasSubstr("keep one")));
  EXPECT_THAT(error_of([&] { overwrites("fp16: true, fp16.enabled: true"); }), HasSubstr("fp16"));
  EXPECT_EQ(read("", "ds_config: {zero_optimization.stage: 1}").config_overwrites,
            Json::parse(R"({"zero_optimization": {"stage": 1}})"));
}

TEST_F(ExperimentFile, ALengthMayBeWrittenAsAPower) {
  EXPECT_EQ(read("searcher: {max_length: 1e3}\n").document["searcher"]["max_length"].dump(), "1000");
  EXPECT_EQ(read("searcher: {max_length: {batches: 2.0e+2}}\n").document["searcher"]["max_length"]["batches"].dump(),
            "200");
  EXPECT_THAT(complaint("searcher: {max_length: 1.5}\n"), HasSubstr("whole number"));
}

TEST_F(ExperimentFile, AConfigurationInPlaceBesideAFileOfTheEntrypointIsRefused) {
  write("e.yaml",
        "entrypoint: python3 t.py --deepspeed_config ds.json\n"
        "hyperparameters: {ds_config: {zero_optimization: {stage: 1}}}\n");
  EXPECT_THAT(error_of([&] { read_experiment(request_); }),
              AllOf(HasSubstr("ds_config"), HasSubstr("entrypoint names ds.json")));
}

TEST_F(ExperimentFile, HyperparametersAreValues) {
  const Experiment experiment =
      read("",
           "deepspeed_config: {type: const, val: ds.json}, n: {a: {type: const, val: 3}, type: Adam}, "
           "overwrite_deepspeed_args: {gradient_accumulation_steps: {type: categorical, vals: [1, 2]}}");
  EXPECT_EQ(experiment.hyperparameters["n"], Json::parse(R"({"a": 3, "type": "Adam"})"));
  EXPECT_EQ(experiment.config_overwrites["gradient_accumulation_steps"], Json::parse("[1, 2]"));
  EXPECT_THAT(error_of([&] { read("", "deepspeed_config: ds.json, lr: {type: categorical, vals: [1, 2]}"); }),
              HasSubstr("(categorical)"));
}

TEST_F(ExperimentFile, AChoiceWhereAListIsOneValueIsForASpaceFile) {
  for (const char* section : {"optimizer", "scheduler"}) {
    const std::string overwrites = std::string(section) + ": {params: {x: {type: categorical, vals: [1, 2]}}}";
    EXPECT_THAT(
        error_of([&] { read("", "deepspeed_config: ds.json, overwrite_deepspeed_args: {" + overwrites + "}"); }),
        HasSubstr("--space FILE"))
        << section;
  }
}

TEST_F(ExperimentFile, WhatTheFullTrainingWillReadIsCheckedAtOnce) {
  for (const char* good :
       {"searcher: {max_length: 5}\n", "searcher: {max_length: {epochs: 1}}\n", "min_validation_period: {batches: 0}\n",
        "min_checkpoint_period: ~\n", "scheduling_unit: 10\n", "scheduling_unit: 0\n", "scheduling_unit: ~\n",
        "checkpoint_policy: none\n"}) {
    read(good);
  }
  EXPECT_THAT(complaint("searcher: {max_length: {steps: 100}}\n"), HasSubstr("searcher.max_length is {\"steps\":100}"));
  EXPECT_THAT(complaint("searcher: {max_length: 0}\n"), HasSubstr("at least 1"));
  EXPECT_THAT(complaint("searcher: {max_length: {}}\n"), HasSubstr("at least 1"));
  EXPECT_THAT(complaint("min_checkpoint_period: {epoch: 1}\n"), HasSubstr("min_checkpoint_period is"));
  EXPECT_THAT(complaint("min_validation_period: [1]\n"), HasSubstr("min_validation_period is"));
  EXPECT_THAT(complaint("scheduling_unit: '100'\n"), AllOf(HasSubstr("scheduling_unit"), HasSubstr("integer")));
  EXPECT_THAT(complaint("checkpoint_policy: bset\n"), HasSubstr("best, all"));
}

TEST_F(ExperimentFile, AStartupHookIsNamedAsItDoesNotRun) {
  write("model/startup-hook.sh", "pip install x\n");
  EXPECT_THAT(read("").notices, Contains(HasSubstr("startup-hook.sh: not run")));
}

TEST_F(ExperimentFile, SlotsComeFromTheFileTheCommandOrTheCommandLine) {
  EXPECT_EQ(read("resources: {slots_per_trial: 4, max_slots: 8}\n").slots_per_trial, 4);
  EXPECT_EQ(read("resources: {slots_per_trial: 4, max_slots: 8}\n").max_slots, 8);
  EXPECT_THAT(error_of([&] { read("resources: {slots_per_trial: 0}\n"); }),
              AllOf(HasSubstr("resources.slots_per_trial"), HasSubstr("at least 1")));
  request_.slots_per_trial = 2;
  EXPECT_EQ(read("resources: {slots_per_trial: 4}\n").slots_per_trial, 2);
  request_.slots_per_trial.reset();
  write("e.yaml", "entrypoint: deepspeed --num_gpus 3 t.py --deepspeed_config ds.json\n");
  EXPECT_EQ(read_experiment(request_).slots_per_trial, std::nullopt);
  write("e.yaml",
        "entrypoint: deepspeed --num_gpus 3 t.py --deepspeed_config ds.json\nresources: {slots_per_trial: 2}\n");
  EXPECT_THAT(error_of([&] { read_experiment(request_); }), HasSubstr("takes 3 slots"));
}

TEST_F(ExperimentFile, TheLaunchModuleGetsTheSlotsOfATrial) {
  install("deepspeed");
  write("e.yaml",
        "entrypoint: python3 -m determined.launch.deepspeed python3 t.py\nresources: {slots_per_trial: 4}\n"
        "hyperparameters: {deepspeed_config: ds.json}\n");
  EXPECT_THAT(read_experiment(request_).command,
              ElementsAre("deepspeed", "--num_gpus", "4", "--no_python", "--no_local_rank", "python3", "t.py"));
}

TEST_F(ExperimentFile, VariablesComeAsAListAMapOrByDevice) {
  const std::string key = "environment:\n  environment_variables: ";
  EXPECT_THAT(read(key + "[A=1, B=x=y, A=2]\n").variables, ElementsAre("B=x=y", "A=2"));
  EXPECT_THAT(read(key + "{A: 1, B: x, C: ~}\n").variables, ElementsAre("A=1", "B=x", "C="));
  const std::string by_device = "{cpu: [D=cpu], cuda: [D=cuda], rocm: [D=rocm]}\n";
  EXPECT_THAT(read(key + by_device).variables, ElementsAre("D=cpu"));
  EXPECT_THAT(read(key + by_device).notices, Contains(HasSubstr("environment_variables.cuda")));
  install("rocm-smi");
  EXPECT_THAT(read(key + by_device).variables, ElementsAre("D=rocm"));
  install("nvidia-smi");
  EXPECT_THAT(read(key + by_device).variables, ElementsAre("D=cuda"));
  EXPECT_THAT(read(key + by_device).notices, Not(Contains(HasSubstr("left out"))));
  EXPECT_THAT(complaint(key + "[1]\n"), AllOf(HasSubstr("list of NAME=value"), HasSubstr("it has 1")));
  EXPECT_THAT(complaint(key + "['=x']\n"), HasSubstr("list of NAME=value"));
  EXPECT_THAT(complaint(key + "{A: [1]}\n"), HasSubstr("be a text"));
}

TEST_F(ExperimentFile, VariablesOfTheEntrypointAreTheExperiments) {
  write("e.yaml",
        "entrypoint: PYTHONPATH=src B=2 python3 t.py\nhyperparameters: {deepspeed_config: ds.json}\n"
        "environment:\n  environment_variables: [A=1, B=1]\n");
  const Experiment experiment = read_experiment(request_);
  EXPECT_THAT(experiment.command, ElementsAre("python3", "t.py"));
  EXPECT_THAT(experiment.variables, ElementsAre("A=1", "PYTHONPATH=src", "B=2"));
}

TEST_F(ExperimentFile, WordsAndVariablesKeepTheirSpelling) {
  write("e.yaml",
        "name: 1.10\nx-lr: &lr 1.0e-4\nentrypoint: [python3, t.py, --v, 1.10, --bucket, 5e8, --lr, *lr, --on, True]\n"
        "hyperparameters: {deepspeed_config: ds.json}\n"
        "environment:\n  environment_variables: {V: 1.10, BUCKET: 5e8, ID: 007, BIG: 18446744073709551616}\n");
  const Experiment experiment = read_experiment(request_);
  EXPECT_EQ(experiment.name, "1.10");
  EXPECT_THAT(experiment.command,
              ElementsAre("python3", "t.py", "--v", "1.10", "--bucket", "5e8", "--lr", "1.0e-4", "--on", "True"));
  EXPECT_THAT(experiment.variables, UnorderedElementsAre("V=1.10", "BUCKET=5e8", "ID=007", "BIG=18446744073709551616"));
}

TEST_F(ExperimentFile, RestartsOfATrialAreTakenOver) {
  EXPECT_EQ(read("max_restarts: 3\n").max_restarts, 3);
  EXPECT_EQ(read("max_restarts: 0\n").max_restarts, 0);
  EXPECT_EQ(read("").max_restarts, std::nullopt);
  EXPECT_THAT(complaint("max_restarts: -1\n"), AllOf(HasSubstr("max_restarts"), HasSubstr("at least 0")));
}

TEST_F(ExperimentFile, WhatThePythonInterfaceReadsIsKeptForTheScript) {
  const Experiment experiment = read("scheduling_unit: 2\nmin_validation_period: {batches: 1}\nproject: x\n");
  ASSERT_EQ(experiment.notices.size(), 2u);
  EXPECT_THAT(experiment.notices[0], HasSubstr("effect here: project"));
  EXPECT_THAT(experiment.notices[1], HasSubstr("script: scheduling_unit, min_validation_period"));
}

TEST_F(ExperimentFile, AMetricOfDsatsIsTakenAnyOtherIsReported) {
  EXPECT_EQ(read("searcher: {metric: throughput, smaller_is_better: false}\n").metric, "throughput");
  EXPECT_EQ(read("searcher: {metric: latency}\n").metric, "latency");
  const Experiment experiment = read("searcher: {metric: loss, smaller_is_better: true}\n");
  EXPECT_EQ(experiment.metric, std::nullopt);
  EXPECT_THAT(experiment.notices.at(0), HasSubstr("script: searcher.metric, searcher.smaller_is_better"));
}

TEST_F(ExperimentFile, NoKeyIsDroppedWithoutAWord) {
  const Experiment experiment = read(
      "labels: [a]\nmy_own: 1\nresources: {shm_size: 1, slots_per_trial: 1}\n"
      "environment: {image: x}\nworkspace: w\n");
  EXPECT_THAT(experiment.notices,
              ElementsAre(HasSubstr("labels, my_own, resources.shm_size, environment.image, workspace")));
  EXPECT_EQ(experiment.document["my_own"], 1);
  EXPECT_THAT(complaint("resources: {slots_per_trail: 2}\n"), HasSubstr("resources.slots_per_trial?"));
  EXPECT_EQ(read("searcher: {mode: aggressive}\n").notices.size(), 1u);  // near no other key
}

TEST_F(ExperimentFile, BatchSizesOfTheScriptGoWithTheConfiguration) {
  const std::string config = "deepspeed_config: ds.json, ";
  EXPECT_EQ(read("", config + "global_batch_size: 8, data_parallel_world_size: 1").hyperparameters["global_batch_size"],
            8);
  const std::string sizes = config +
                            "overwrite_deepspeed_args: {train_batch_size: auto, "
                            "train_micro_batch_size_per_gpu: 3}, global_batch_size: 8";
  EXPECT_THAT(error_of([&] { read("", sizes); }), HasSubstr("DeepSpeed configuration"));
  const std::string listed = config +
                             "overwrite_deepspeed_args: {train_micro_batch_size_per_gpu: [1, 2, 4]}, "
                             "global_batch_size: 8, data_parallel_world_size: 1";
  EXPECT_EQ(read("", listed).hyperparameters["global_batch_size"], 8);
}

}  // namespace
}  // namespace dsat::cli
