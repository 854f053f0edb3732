// Options into a plan: what becomes of the values that a configuration leaves as "auto".
#include "plan/fit_bucket.h"
#include "plan_fixture.h"

namespace dsat::host {
namespace {

TEST_F(PlanTest, AutoIsLeftOutWithANoticeWhereNobodyFillsItIn) {
  const Plan plan = plan_with(R"({"optimizer": {"params": {"lr": "auto", "eps": 1e-8}}, "gradient_clipping": "auto"})");
  EXPECT_TRUE(noticed(plan, "'optimizer.params.lr', 'gradient_clipping' are \"auto\""));
  EXPECT_FALSE(plan.base_config.contains("gradient_clipping"));
  EXPECT_EQ(plan.base_config["optimizer"]["params"], Json({{"eps", 1e-8}}));
}

TEST_F(PlanTest, APrecisionThatNobodyFillsInIsLeftOutAsAWhole) {
  const Plan plan = plan_with(R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto", "loss_scale": 0}})");
  EXPECT_FALSE(plan.base_config.contains("bf16"));
  EXPECT_EQ(plan.base_config["fp16"], Json({{"loss_scale", 0}}));
}

TEST_F(PlanTest, AutoStaysForAccelerateAndForAScriptThatTakesTheFile) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"accelerate", "launch", "--use_deepspeed", "--deepspeed_config_file", "ds_config.json",
                                 "train.py"},
        std::vector<std::string>{"/bin/true", "train.py", "--deepspeed", "ds_config.json", "--config", "run.yaml"}}) {
    write_program(dir() / "accelerate", "#!/bin/sh\n");
    const Plan plan = plan_with(
        R"({"bf16": {"enabled": "auto"}, "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": "auto"}},
            "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
            "train_batch_size": "auto", "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"}})",
        [&](StudyOptions& o) {
          o.command = command;
          o.environment = {"PATH=" + dir().string()};
        });
    EXPECT_EQ(plan.base_config["bf16"]["enabled"], "auto");
    EXPECT_EQ(plan.base_config["scheduler"]["params"]["total_num_steps"], "auto");
    EXPECT_EQ(plan.base_config["zero_optimization"]["reduce_bucket_size"], "auto");
    for (const char* key : {config::kMicroBatchKey, config::kAccumulationKey, config::kTrainBatchKey}) {
      EXPECT_TRUE(plan.base_config[key].is_number()) << key;
    }
  }
}

TEST_F(PlanTest, PluginsSeeThePrecisionThatTheCommandsFlagsGive) {
  write_program(dir() / "accelerate", "#!/bin/sh\n");
  const auto seen = [&](const std::string& config, std::vector<std::string> words) {
    const Plan plan = plan_with(config, [&](StudyOptions& o) {
      o.command = {"accelerate", "launch", "--use_deepspeed", "--deepspeed_config_file", "ds_config.json"};
      o.command.insert(o.command.end(), words.begin(), words.end());
      o.environment = {"PATH=" + dir().string()};
    });
    EXPECT_EQ(plan.base_config.value("bf16", Json()), Json::parse(config).value("bf16", Json())) << "the file is kept";
    return description_for_search(plan).at("base_config");
  };
  const std::string open = R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}})";
  EXPECT_EQ(seen(open, {"train.py", "--bf16", "True"})["bf16"]["enabled"], true);
  EXPECT_EQ(seen(open, {"train.py", "--bf16", "--lr", "1"})["fp16"]["enabled"], false);
  EXPECT_EQ(seen(open, {"train.py", "--bf16=false", "--fp16"})["fp16"]["enabled"], true);
  EXPECT_EQ(seen(open, {"--mixed-precision=bf16", "train.py"})["bf16"]["enabled"], true);
  EXPECT_EQ(seen(open, {"--mixed_precision", "no", "train.py"})["bf16"]["enabled"], "auto");
  EXPECT_EQ(seen("{}", {"--mixed_precision", "fp16", "train.py"})["fp16"]["enabled"], true) << "no section at all";
  EXPECT_FALSE(seen(R"({"bf16": {"enabled": true}})", {"train.py", "--fp16"}).contains("fp16"));
}

TEST_F(PlanTest, AutoStaysForHuggingFaceButTunedKeysAreNumbers) {
  const Plan plan = plan_with(
      R"({"gradient_clipping": "auto", "train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto",
          "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"}})",
      [](StudyOptions& o) {
        o.default_axes = false;
        o.command = {"/bin/true", "train.py", "--deepspeed", "ds_config.json", "--per_device_train_batch_size", "4"};
      });
  EXPECT_TRUE(plan.hugging_face);
  EXPECT_EQ(plan.base_config["gradient_clipping"], "auto");
  EXPECT_EQ(replaced_bucket(plan), std::nullopt) << "the Trainer fills it in for your own configuration, too";
  EXPECT_TRUE(plan.base_config["train_micro_batch_size_per_gpu"].is_number());
  EXPECT_TRUE(plan.base_config["train_batch_size"].is_number());
}

TEST_F(PlanTest, AStageThatIsLeftOpenIsANumberInTrials) {
  const Plan plan = plan_with(R"({"zero_optimization": {"stage": "auto"}})", [](StudyOptions& o) {
    o.command = {"/bin/true", "train.py", "--deepspeed", "ds_config.json"};
    o.zero_stages = {2, 3};
  });
  EXPECT_EQ(plan.base_config["zero_optimization"]["stage"], 2);
}

TEST_F(PlanTest, EveryTrialHasTheAccumulationOfTheTrainersFlag) {
  const auto base = [&](const std::string& config) {
    return plan_with(config,
                     [](StudyOptions& o) {
                       o.command = {"/bin/true",
                                    "train.py",
                                    "--deepspeed",
                                    "ds_config.json",
                                    "--gradient-accumulation-steps=8",
                                    "--per_device_train_batch_size",
                                    "4"};
                     })
        .base_config;
  };
  const Json open = base(R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"})");
  EXPECT_EQ(open[config::kMicroBatchKey], 4);
  EXPECT_EQ(open[config::kAccumulationKey], 8);
  EXPECT_EQ(open[config::kTrainBatchKey], 32);
  EXPECT_EQ(base(R"({"gradient_accumulation_steps": 2})")[config::kAccumulationKey], 2)
      << "a number of its own goes first";
  EXPECT_EQ(base(R"({"train_batch_size": 6})")[config::kAccumulationKey], 1);
  EXPECT_EQ(base(R"({"train_batch_size": 32})")[config::kAccumulationKey], 8) << "both say the same";
}

TEST_F(PlanTest, FlagsOfAnySizeAreReadBesideATrainBatch) {
  const std::string huge = std::to_string(int64_t{1} << 40);
  const Plan plan = plan_with(R"({"train_batch_size": 6})", [&](StudyOptions& o) {
    o.command = {"/bin/true",
                 "t.py",
                 "--deepspeed",
                 "ds_config.json",
                 "--per_device_train_batch_size",
                 huge,
                 "--gradient_accumulation_steps",
                 huge};
  });
  EXPECT_EQ(plan.base_config[config::kTrainBatchKey], 6);
}

TEST_F(PlanTest, FlagsThatAreMappedFillInWhatTheConfigurationLeavesOpen) {
  const auto base = [&](const std::string& config) {
    return plan_with(config,
                     [](StudyOptions& o) {
                       o.command = {"/bin/true", "t.py",   "--deepspeed_config", "ds_config.json", "--bs",
                                    "8",         "--gas=4"};
                       o.arg_mappings = {{config::kMicroBatchKey, "--bs"}, {config::kAccumulationKey, "--gas"}};
                     })
        .base_config;
  };
  for (const char* config : {"{}", R"({"train_micro_batch_size_per_gpu": "auto"})"}) {
    EXPECT_EQ(base(config)[config::kMicroBatchKey], 8) << config;
    EXPECT_EQ(base(config)[config::kAccumulationKey], 4) << config;
  }
  EXPECT_EQ(base(R"({"train_micro_batch_size_per_gpu": 2})")[config::kMicroBatchKey], 2);
}

}  // namespace
}  // namespace dsat::host
