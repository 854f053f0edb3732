// What a trial is given: its configuration with the protocol's section, and the variables of its environment.
#include "runner/trial_inputs.h"

#include <gmock/gmock.h>

#include <utility>

#include "dsat/config/engine_version.h"
#include "dsat/config/json.h"

namespace dsat::host {
namespace {

using ::testing::ElementsAre;
namespace fs = std::filesystem;

TrialSpec spec(Json config = Json::object()) {
  TrialSpec result;
  result.id = 3;
  result.config = std::move(config);
  return result;
}

TEST(TrialConfig, AddsTheProtocolsSectionAndKeepsTheUsersKeys) {
  const Json config = Json::parse(R"({"bf16": {"enabled": true}, "autotuning": {"fast": false, "metric": "latency"}})");
  const Json result = trial_config(spec(config), "/t/3", {std::nullopt, 3, 5});
  EXPECT_EQ(result["bf16"], config["bf16"]);
  EXPECT_EQ(result["autotuning"],
            Json::parse(R"({"fast": false, "metric": "latency", "enabled": true, "start_profile_step": 3,
                            "end_profile_step": 5, "metric_path": "/t/3/metrics.json"})"));
}

TEST(TrialConfig, AsksForModelInformationOnlyInThatRun) {
  TrialSpec wanted = spec(Json::parse(R"({"autotuning": {"model_info": {"profile": true, "x": 1}}})"));
  EXPECT_EQ(trial_config(wanted, "/t/3", {})["autotuning"]["model_info"], Json::parse(R"({"profile": false, "x": 1})"));
  wanted.model_info = true;
  const Json section = trial_config(wanted, "/t/3", {})["autotuning"];
  EXPECT_EQ(section["model_info"], Json::parse(R"({"profile": true, "x": 1})"));
  EXPECT_EQ(section["model_info_path"], "/t/3/model_info.json");
  wanted.config = Json::parse(R"({"autotuning": null})");
  EXPECT_EQ(trial_config(wanted, "/t/3", {})["autotuning"]["enabled"], true);
}

// Without a line for each step there is no wall_throughput, and no median.
TEST(TrialConfig, EveryStepIsPrintedWhateverTheFileSays) {
  for (const char* text : {"{}", R"({"steps_per_print": 10, "log_level": "warning"})",
                           R"({"steps_per_print": "auto", "log_level": null})", R"({"steps_per_print": 0})"}) {
    const Json config = trial_config(spec(Json::parse(text)), "/t/3", {});
    EXPECT_EQ(config["steps_per_print"], 1) << text;
    EXPECT_EQ(config["log_level"], "info") << text;
  }
  EXPECT_EQ(trial_config(spec({{"log_level", "debug"}}), "/t/3", {})["log_level"], "debug") << "it prints more";
}

TEST(TrialConfig, NoKeyIsAddedThatTheNewestDeepSpeedRefuses) {
  const Json config = trial_config(spec(Json::parse(R"({"fp16": {"enabled": true}})")), "/t/3", {});
  EXPECT_THAT(config::retired_keys(config), ::testing::IsEmpty());
}

TEST(TrialConfig, ACurriculumHasItsFullDifficulty) {
  const Json config = Json::parse(
      R"({"curriculum_learning": {"enabled": true, "curriculum_type": "seqlen", "min_difficulty": 8,
          "max_difficulty": 512, "schedule_type": "fixed_linear"}})");
  EXPECT_EQ(trial_config(spec(config), "/t/3", {})["curriculum_learning"]["min_difficulty"], 512);
}

// At 2^16 the first steps of a run overflow and update nothing.
TEST(TrialConfig, ADynamicLossScaleBeginsLow) {
  const auto power = [](const char* fp16) {
    const Json section = trial_config(spec({{"fp16", Json::parse(fp16)}}), "/t/3", {})["fp16"];
    return section.is_object() && section.contains("initial_scale_power") ? section["initial_scale_power"] : Json();
  };
  EXPECT_EQ(power(R"({"enabled": true})"), 8);
  EXPECT_EQ(power(R"({"enabled": true, "min_loss_scale": 1024})"), Json()) << "DeepSpeed gives up there";
  EXPECT_EQ(power(R"({"enabled": "auto", "loss_scale": 0, "initial_scale_power": 16})"), 8);
  EXPECT_EQ(power(R"({"enabled": true, "initial_scale_power": 2})"), 2);
  EXPECT_EQ(power(R"({"enabled": true, "loss_scale": 128, "initial_scale_power": 16})"), 16) << "it is not dynamic";
  EXPECT_EQ(power(R"({"enabled": false})"), Json());
  EXPECT_EQ(power("3"), Json()) << "DeepSpeed's to refuse";
}

TEST(TrialVariables, NameTheTrialItsPortAndItsDevices) {
  const std::vector<Slot> slots{{"GPU-a", 0, {}}, {"GPU-b", 1, {}}};
  EXPECT_THAT(trial_variables(spec(), "/t/3", 29500, Backend::hip, slots, {}),
              ElementsAre("DSAT_TRIAL_ID=3", "DSAT_TRIAL_DIR=/t/3", "DSAT_DS_CONFIG=/t/3/ds_config.json",
                          "MASTER_PORT=29500", "PYTHONUNBUFFERED=1", "HIP_VISIBLE_DEVICES=GPU-a,GPU-b"));
  EXPECT_EQ(trial_variables(spec(), "/t/3", 29500, Backend::none, slots, {"PYTHONUNBUFFERED="}).size(), 4u)
      << "the caller's own stays";
}

TEST(TrialVariables, ALoneRankKeepsThePlaceThatTheCallerGivesIt) {
  EXPECT_THAT(lone_rank({"MASTER_ADDR=node7"}),
              ElementsAre("RANK=0", "LOCAL_RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=127.0.0.1"));
  EXPECT_TRUE(lone_rank({"WORLD_SIZE=4"}).empty());
}

// nvidia-smi counts by the bus, CUDA the fastest first.
TEST(TrialVariables, CudaCountsAsNvidiaSmiUnlessTheCallerCountsOtherwise) {
  const auto order = [](const Environment& caller, Backend backend = Backend::cuda) {
    return get_variable(trial_variables(spec(), "/t/3", 29500, backend, {{"0", 0, {}}}, caller), "CUDA_DEVICE_ORDER");
  };
  EXPECT_EQ(order({}), "PCI_BUS_ID");
  EXPECT_EQ(order({"CUDA_VISIBLE_DEVICES=GPU-5c,GPU-7a"}), "PCI_BUS_ID") << "the launcher counts all the same";
  EXPECT_EQ(order({"CUDA_VISIBLE_DEVICES=1,0"}), std::nullopt) << "indices in the caller's order";
  EXPECT_EQ(order({"CUDA_DEVICE_ORDER=FASTEST_FIRST"}), std::nullopt);
  EXPECT_EQ(order({}, Backend::hip), std::nullopt);
}

TEST(TrialConfig, GivesEveryTrialFoldersOfItsOwnToSwapTo) {
  const fs::path nvme = fs::temp_directory_path() / "dsat-nvme-test";
  const Json config{{"zero_optimization", {{"offload_param", {{"device", "nvme"}, {"nvme_path", nvme.string()}}}}}};
  const auto folder = [&](const char* trial_dir) {
    return fs::path(
        trial_config(spec(config), trial_dir, {std::nullopt, 3, 5})["zero_optimization"]["offload_param"]["nvme_path"]
            .get<std::string>());
  };
  EXPECT_EQ(folder("/t/3").parent_path(), nvme);
  EXPECT_EQ(folder("/t/3"), folder("/t/3"));
  EXPECT_NE(folder("/t/3"), folder("/t/4"));
  EXPECT_NE(folder("/t/3"), folder("/u/3")) << "of another study";
  fs::create_directories(folder("/t/3") / "zero_stage_3");
  fs::create_directories(folder("/t/4"));
  remove_swap_folders(config, "/t/3");
  EXPECT_FALSE(fs::exists(folder("/t/3")));
  EXPECT_TRUE(fs::exists(folder("/t/4")));
  fs::remove_all(nvme);
}

TEST(TrialConfig, GivesEveryTrialAFlopsReportOfItsOwn) {
  const Json config = Json::parse(R"({"flops_profiler": {"enabled": true, "output_file": "f.txt", "top_modules": 1}})");
  EXPECT_EQ(trial_config(spec(config), "/t/3", {})["flops_profiler"],
            Json::parse(R"({"enabled": true, "output_file": "/t/3/flops_profiler.txt", "top_modules": 1})"));
}

}  // namespace
}  // namespace dsat::host
