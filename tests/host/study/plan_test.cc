// Options into a plan: what is refused before anything runs, and what is resolved.
#include "study/plan.h"

#include "base/sha256.h"
#include "host/study/study_fixture.h"
#include "study/describe_study.h"
#include "study/fit_bucket.h"
#include "support/error_of.h"

namespace dsat::host {
namespace {

class PlanTest : public StudyTest {
 protected:
  using Change = std::function<void(StudyOptions&)>;

  std::string why_not(const Change& change) {
    StudyOptions given = options();
    change(given);
    return error_of([&] { make_plan(given); });
  }
  Plan plan_with(
      const std::string& config, const Change& change = [](StudyOptions&) {}) {
    write_text(dir() / "ds_config.json", config);
    StudyOptions given = options();
    change(given);
    return plan_of(given);
  }
  static bool noticed(const Plan& plan, const std::string& part) {
    return std::any_of(plan.notices.begin(), plan.notices.end(),
                       [&](const std::string& notice) { return notice.find(part) != std::string::npos; });
  }
};

TEST_F(PlanTest, RefusesWhatDeepSpeedRefusesWithFileAndKey) {
  const std::string file = (dir() / "ds_config.json").string();
  const auto refusal = [&](const std::string& config) { return error_of([&] { plan_with(config); }); };
  EXPECT_EQ(refusal(R"({"zero_optimization": {"stage": "2"}})"),
            file + ": zero_optimization.stage is \"2\"; it must be 0, 1, 2 or 3");
  EXPECT_EQ(refusal(R"({"zero_optimization": {"my_own": 2}})"),
            file +
                ": unknown key 'zero_optimization.my_own': DeepSpeed refuses every key that it does not know in this "
                "section");
  EXPECT_THAT(refusal(R"({"zero_optimization": {"overlap_com": true}})"), HasSubstr("did you mean"));
  EXPECT_EQ(plan_with(R"({"zero_optimization": {"overlap_comm": "yes"}})").base_config["zero_optimization"].dump(),
            R"({"overlap_comm":true})");
}

TEST_F(PlanTest, RefusesASpaceFileByItsOption) {
  const fs::path file = dir() / "space.json";
  const Change with_file = [&](StudyOptions& o) {
    o.space_file = file;
    o.slots_per_trial = 4;
  };
  EXPECT_THAT(why_not(with_file), ::testing::AllOf(HasSubstr("--space: "), HasSubstr("space.json")));
  write_text(file, R"({"zero_optimization.zero_hpz_partition_size": [2, 3]})");
  EXPECT_EQ(why_not(with_file), "--space " + file.string() +
                                    ": zero_optimization.zero_hpz_partition_size divides the devices of a trial: it is "
                                    "3, but they are 4");
  write_text(file, R"({"zero_optimization.reduce_bucket_size": [-1]})");
  EXPECT_EQ(
      why_not(with_file),
      "--space " + file.string() + ": zero_optimization.reduce_bucket_size is -1; it must be an integer of at least 0");
}

// DeepSpeed would refuse every trial.
TEST_F(PlanTest, ASwitchIsNoAxisBesideTheSectionThatReplacedIt) {
  const fs::path file = dir() / "space.json";
  const Change with_file = [&](StudyOptions& o) { o.space_file = file; };
  const std::string config = R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})";
  write_text(file, R"({"zero_optimization.cpu_offload": [true, false]})");
  EXPECT_THAT(error_of([&] { plan_with(config, with_file); }),
              ::testing::AllOf(HasSubstr("space.json"), HasSubstr("refuses both together")));
  write_text(file, R"({"zero_optimization.cpu_offload": [true, false],
                       "zero_optimization.offload_optimizer.device": ["cpu", "none"]})");
  EXPECT_THAT(error_of([&] { plan_with("{}", with_file); }), HasSubstr("refuses both together"));
}

// A file that was made for more devices.
TEST_F(PlanTest, APartitionThatDoesNotDivideTheDevicesMovesTheProfile) {
  const Change four = [](StudyOptions& o) { o.slots = o.slots_per_trial = 4; };
  const Plan plan = plan_with(R"({"zero_optimization": {"stage": 3, "mics_shard_size": 16}})", four);
  EXPECT_EQ(config::zero_stage(plan.base_config), 1);
  EXPECT_TRUE(noticed(plan, "the profile starts at stage 1"));
}

TEST_F(PlanTest, ATrainBatchHoldsForOneValueOfAListAtLeast) {
  const Plan plan = plan_with(R"({"train_batch_size": 128, "train_micro_batch_size_per_gpu": [3, 8]})");
  EXPECT_EQ(plan.base_config["train_micro_batch_size_per_gpu"], 3);
}

TEST_F(PlanTest, ASingleConfigurationIsNoSearchAndTwoMicroBatchesAreOne) {
  const auto up_to = [](int64_t micro_batch) {
    return [micro_batch](StudyOptions& o) {
      o.zero_stages = {0};
      o.max_micro_batch = micro_batch;
    };
  };
  EXPECT_THAT(why_not(up_to(1)), HasSubstr("a single configuration (ZeRO stage 0, micro batch 1)"));
  EXPECT_EQ(why_not(up_to(2)), "no error");
}

TEST_F(PlanTest, SequenceParallelismDividesTheWorld) {
  const Change four = [](StudyOptions& o) { o.slots_per_trial = 4; };
  const Plan plan = plan_with(R"({"train_micro_batch_size_per_gpu": 3, "sequence_parallel_size": 2})", four);
  EXPECT_EQ(plan.data_parallel_size, 2);
  EXPECT_EQ(plan.base_config["train_batch_size"], 6);
  EXPECT_THAT(error_of([&] { plan_with(R"({"sequence_parallel_size": 3})", four); }),
              HasSubstr("4 slots per trial is not a multiple of"));
}

// "fast": nothing but stage and micro batch is tuned, unless the bucket leaves no room for a model.
TEST_F(PlanTest, ABucketThatTakesTheDeviceIsTuned) {
  const Change fast = [](StudyOptions& o) {
    o.default_axes = false;
    o.device_memory_bytes = 1'500'000'000;
  };
  const Plan large = plan_with(R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": 5e9}})", fast);
  ASSERT_EQ(large.space.stages.front().axes.size(), 1u);
  EXPECT_EQ(large.space.stages.front().axes.front().key, "zero_optimization.reduce_bucket_size");
  EXPECT_EQ(Json(large.space.stages.front().axes.front().values).dump(), "[1000000,5000000,10000000,50000000]");
  EXPECT_EQ(large.base_config["zero_optimization"]["reduce_bucket_size"], 50'000'000);
  EXPECT_TRUE(noticed(large, "takes 20000 MB of the 1500 MB of a device"));
  EXPECT_EQ(replaced_bucket(large), 5'000'000'000) << "the user's own trial keeps it";
  EXPECT_EQ(replaced_bucket(plan_with("{}", fast)), 500'000'000) << "DeepSpeed's default takes 2 GB as well";
  const Plan small = plan_with(R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": 5e7}})", fast);
  EXPECT_TRUE(small.space.stages.front().axes.empty());
  EXPECT_EQ(replaced_bucket(small), std::nullopt);
  const Plan listed = plan_with(R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": [5e8, 5e9]}})", fast);
  EXPECT_EQ(Json(listed.space.stages.front().axes.front().values).dump(), "[500000000,5000000000]");
}

TEST_F(PlanTest, RefusesNumbersThatMakeNoSense) {
  const std::vector<std::pair<Change, std::string>> bad = {
      {[](StudyOptions& o) { o.max_trials = 0; }, "--max-trials 0"},
      {[](StudyOptions& o) { o.max_trials = -1; }, "--max-trials -1"},
      {[](StudyOptions& o) { o.max_concurrent_trials = 0; }, "--max-concurrent-trials 0"},
      {[](StudyOptions& o) { o.start_profile_step = -1; }, "--start-profile-step -1"},
      {[](StudyOptions& o) { o.end_profile_step = 2; }, "--end-profile-step 2"},
      {[](StudyOptions& o) { o.min_micro_batch = 0; }, "--min-micro-batch 0"},
      {[](StudyOptions& o) {
         o.min_micro_batch = 8;
         o.max_micro_batch = 4;
       },
       "--max-micro-batch 4 is below"},
      {[](StudyOptions& o) { o.global_batch = 0; }, "--global-batch"},
      {[](StudyOptions& o) { o.max_train_batch_size = 0; }, "--max-train-batch-size"},
      {[](StudyOptions& o) { o.profile_trials = 0; }, "--profile-trials 0"},
      {[](StudyOptions& o) { o.trial_timeout = {}; }, "--trial-timeout"},
      {[](StudyOptions& o) { o.no_progress_timeout = {}; }, "--no-progress-timeout"},
      {[](StudyOptions& o) { o.time_budget = std::chrono::milliseconds(0); }, "--time-budget"},
      {[](StudyOptions& o) {
         o.zero_stages = {1, 4};
       },
       "--zero-stages 4"},
      {[](StudyOptions& o) {
         o.oom_patterns = {"fits", "a(b"};
       },
       "--oom-pattern 'a(b'"},
      {[](StudyOptions& o) { o.slots = 0; }, "slots"},
      {[](StudyOptions& o) { o.slots_per_trial = 99; }, "slots"},
      {[](StudyOptions& o) { o.max_slots = 0; }, "slots"},
      {[](StudyOptions& o) { o.metric = "beauty"; }, "throughput"},
      {[](StudyOptions& o) { o.command = {}; }, "no training command"},
      {[](StudyOptions& o) { o.command[0] = "/no/such/program"; }, "/no/such/program"},
  };
  for (const auto& [change, part] : bad) EXPECT_THAT(why_not(change), HasSubstr(part));
}

TEST_F(PlanTest, RefusesConfigurationsThatCannotBeTuned) {
  const auto with = [this](const std::string& text) {
    write_text(dir() / "ds_config.json", text);
    return why_not([](StudyOptions&) {});
  };
  EXPECT_THAT(with("{\"a\": 1,\n \"b\" 2}"), HasSubstr("ds_config.json:2:"));
  EXPECT_THAT(with(R"({"zero_optimization": {"stage": 1, "stage": 2}})"), HasSubstr("stage"));
  EXPECT_THAT(with(R"({"zero_optimisation": {"stage": 1}})"), HasSubstr("did you mean 'zero_optimization'"));
  EXPECT_THAT(with(R"({"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2})"),
              HasSubstr("train_batch_size"));
  EXPECT_THAT(with(R"({"pipeline": {"stages": 2}})"), ::testing::Not(::testing::IsEmpty()));
  fs::remove(dir() / "ds_config.json");
  EXPECT_THAT(why_not([](StudyOptions&) {}), HasSubstr("ds_config.json"));
}

TEST_F(PlanTest, AStageThatTheUsersOwnKeysForbidIsNotWhereTheProfileStarts) {
  const Plan plan = plan_with(R"({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}})");
  EXPECT_EQ(plan.base_config["zero_optimization"]["stage"], 3);
  EXPECT_EQ(plan.base_config["zero_optimization"]["offload_param"]["device"], "cpu");
  EXPECT_TRUE(noticed(plan, "offload_param")) << "and this is said";
  const Plan fine = plan_with(R"({"zero_optimization": {"stage": 1}})");
  EXPECT_EQ(fine.base_config["zero_optimization"]["stage"], 1);
}

TEST_F(PlanTest, KeysThatAreWrongAtEveryStageAreRefused) {
  write_text(dir() / "ds_config.json", R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": -5}})");
  EXPECT_THAT(why_not([](StudyOptions&) {}), HasSubstr("zero_optimization.reduce_bucket_size is -5"));
}

TEST_F(PlanTest, AMisspeltKeyOfAnArgumentMappingIsRefusedAndOnesOwnIsNot) {
  const auto mapping = [](const std::string& key) {
    return [key](StudyOptions& o) {
      o.command.insert(o.command.end(), {"--batch", "1"});
      o.arg_mappings = {{key, "--batch"}};
    };
  };
  EXPECT_THAT(why_not(mapping("train_micro_batch_size")), HasSubstr("did you mean 'train_micro_batch_size_per_gpu'"));
  EXPECT_THAT(why_not(mapping("train_micro_batch_per_gpu")),
              HasSubstr("did you mean 'train_micro_batch_size_per_gpu'"));
  EXPECT_THAT(why_not(mapping("my_company.batch")), HasSubstr("has a key 'my_company.batch'"));
  plan_with("{}", mapping("train_micro_batch_size_per_gpu"));
  plan_with(R"({"my_company": {"batch": 1}})", mapping("my_company.batch"));
  write_text(dir() / "space.json", R"({"my_company.batch": [1, 2]})");
  plan_with("{}", [&](StudyOptions& o) {
    mapping("my_company.batch")(o);
    o.space_file = dir() / "space.json";
  });
}

TEST_F(PlanTest, AMappingToASwitchWouldOverwriteTheWordBehindIt) {
  const auto mapping = [](std::vector<std::string> words, std::string key) {
    return [words, key](StudyOptions& o) {
      o.command.insert(o.command.end(), words.begin(), words.end());
      o.arg_mappings = {{key, "--batch"}};
    };
  };
  const std::string micro_batch = "train_micro_batch_size_per_gpu", overlap = "zero_optimization.overlap_comm";
  for (const char* number : {"4", "auto", "-1", "1e3"}) plan_with("{}", mapping({"--batch", number}, micro_batch));
  for (const char* flag : {"true", "False", "0", "auto"}) plan_with("{}", mapping({"--batch", flag}, overlap));
  EXPECT_THAT(why_not(mapping({"--batch", "data.txt"}, micro_batch)),
              HasSubstr("train_micro_batch_size_per_gpu names --batch, but 'data.txt' behind it is not a number"));
  EXPECT_THAT(why_not(mapping({"--batch", "--lr", "1"}, micro_batch)), HasSubstr("'--lr' behind it is not a value"));
  EXPECT_THAT(why_not(mapping({"--batch", "data.txt"}, overlap)), HasSubstr("'data.txt' behind it is not true or"));
  plan_with("{}", mapping({"--batch=data.txt"}, micro_batch));
  plan_with(R"({"optimizer": {"type": "Adam"}})", mapping({"--batch", "AdamW"}, "optimizer.type"));
  plan_with("{}", mapping({"--batch", "any.txt"}, "gradient_clipping"));  // no trial writes it
}

TEST_F(PlanTest, AMappingWithoutDashesIsTheFlagOfThatName) {
  const Plan plan = plan_with(R"({"autotuning": {"arg_mappings": {"train_micro_batch_size_per_gpu": " batch"}}})",
                              [](StudyOptions& o) {
                                o.command.insert(o.command.end(), {"--batch", "1"});
                              });
  EXPECT_EQ(plan.arg_mappings.at(0).second, "--batch");
  EXPECT_TRUE(noticed(plan, "'train_micro_batch_size_per_gpu' is mapped to 'batch': read as the flag --batch"));
  const Plan by_option = plan_with("{}", [](StudyOptions& o) {
    o.command.insert(o.command.end(), {"--batch", "1"});
    o.arg_mappings = {{"train_micro_batch_size_per_gpu", "batch"}};
  });
  EXPECT_EQ(by_option.arg_mappings.at(0).second, "--batch");
  for (const char* bad : {"", " ", "-", "--", "--a b", "--a=1"}) {
    write_text(dir() / "ds_config.json",
               Json{{"autotuning", {{"arg_mappings", {{"train_micro_batch_size_per_gpu", bad}}}}}}.dump());
    EXPECT_THAT(why_not([](StudyOptions&) {}), HasSubstr("name a flag of the command")) << bad;
  }
}

TEST_F(PlanTest, RefusesPluginsAndTheirOptionsByName) {
  EXPECT_THAT(why_not([](StudyOptions& o) { o.searcher.plugin = "nonesuch"; }), HasSubstr("no plugin 'nonesuch'"));
  EXPECT_THAT(why_not([](StudyOptions& o) { o.searcher.options["depth"] = 3; }), HasSubstr("--depth"));
  EXPECT_THAT(why_not([](StudyOptions& o) { o.profiler.plugin = fixture_plugin("walker").string(); }),
              HasSubstr("offers no profiler"));
}

TEST_F(PlanTest, AnUnknownKeyThatIsLikeNoKnownOneIsKeptWithANotice) {
  const Plan plan = plan_with(R"({"my_company_secret": {"x": 1}})");
  EXPECT_TRUE(noticed(plan, "my_company_secret"));
  EXPECT_EQ(plan.base_config["my_company_secret"]["x"], 1);
}

TEST_F(PlanTest, AutoIsLeftOutWithANoticeWhereNobodyFillsItIn) {
  const Plan plan = plan_with(R"({"optimizer": {"params": {"lr": "auto", "eps": 1e-8}}, "gradient_clipping": "auto"})");
  EXPECT_TRUE(noticed(plan, "'optimizer.params.lr' is \"auto\""));
  EXPECT_TRUE(noticed(plan, "'gradient_clipping' is \"auto\""));
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
       {std::vector<std::string>{"accelerate", "launch", "--deepspeed_config_file", "ds_config.json", "train.py"},
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
      o.command = {"accelerate", "launch", "--deepspeed_config_file", "ds_config.json"};
      o.command.insert(o.command.end(), words.begin(), words.end());
      o.environment = {"PATH=" + dir().string()};
    });
    EXPECT_EQ(plan.base_config.value("bf16", Json()), Json::parse(config).value("bf16", Json())) << "the file is kept";
    return describe_study(plan, Phase::searcher, 20, {}, Json(), std::nullopt).at("base_config");
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

TEST_F(PlanTest, TrialsOfACommandThatNamesItsDevicesRunOneAtATime) {
  const auto plan_of_command = [&](const std::string& variable) {
    return plan_with("{}", [&](StudyOptions& o) {
      o.command = {"env", variable, "python3", "train.py", "--deepspeed_config", "ds_config.json"};
      o.slots = 4;
      o.slots_per_trial = 1;
      o.max_concurrent_trials = 4;
    });
  };
  const Plan alone = plan_of_command("CUDA_VISIBLE_DEVICES=2,3");
  EXPECT_EQ(alone.concurrency(), 1);
  EXPECT_TRUE(noticed(alone, "one at a time: the command sets CUDA_VISIBLE_DEVICES itself"));
  EXPECT_EQ(plan_of_command("OMP_NUM_THREADS=2").concurrency(), 4);
}

TEST_F(PlanTest, TrialsOfALauncherThatIsOutOfReachRunOneAtATime) {
  const auto plan_of_script = [&](const std::string& script) {
    write_text(dir() / "run.sh", script);
    return plan_with("{}", [](StudyOptions& o) {
      o.command = {"/bin/sh", "run.sh", "--deepspeed_config", "ds_config.json"};
      o.slots = 4;
      o.slots_per_trial = 1;
      o.max_concurrent_trials = 4;
    });
  };
  const Plan alone = plan_of_script("deepspeed --num_gpus 1 train.py \"$@\"\n");
  EXPECT_EQ(alone.concurrency(), 1);
  EXPECT_TRUE(noticed(alone, "one at a time: the launcher in run.sh"));
  const Plan beside = plan_of_script("python3 train.py \"$@\"\n");
  EXPECT_EQ(beside.concurrency(), 4);
  EXPECT_FALSE(noticed(beside, "one at a time"));
}

TEST_F(PlanTest, RanksThatAskMpiForTheirPlaceRunOneTrialAtATime) {
  const auto plan_of_script = [&](const std::string& script) {
    write_text(dir() / "train.py", script);
    return plan_with("{}", [](StudyOptions& o) {
      o.command = {"/usr/bin/env", "mpirun", "-n", "2", "python3", "train.py", "--deepspeed_config", "ds_config.json"};
      o.slots = 4;
      o.max_concurrent_trials = 2;
    });
  };
  const Plan alone = plan_of_script("deepspeed.init_distributed()\n");
  EXPECT_EQ(alone.concurrency(), 1);
  EXPECT_TRUE(noticed(alone, "one at a time: below mpirun DeepSpeed takes port 29500"));
  const Plan beside = plan_of_script("deepspeed.init_distributed(distributed_port=int(os.environ['MASTER_PORT']))\n");
  EXPECT_EQ(beside.concurrency(), 2);
  EXPECT_FALSE(noticed(beside, "one at a time"));
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
}

TEST_F(PlanTest, SmallestIsBestMetricsWarnUnlessTheBatchIsFixed) {
  EXPECT_TRUE(noticed(plan_with("{}", [](StudyOptions& o) { o.metric = "latency"; }), "--global-batch"));
  EXPECT_FALSE(noticed(plan_with("{}",
                                 [](StudyOptions& o) {
                                   o.metric = "latency";
                                   o.global_batch = 8;
                                 }),
                       "--global-batch"));
  EXPECT_EQ(plan_with("{}", [](StudyOptions& o) { o.metric = "fwd"; }).metric, "forward");
}

TEST_F(PlanTest, TheDefaultOutputDirectoryIsNamedAfterTheScriptAndNeverShared) {
  const Change script = [this](StudyOptions& o) {
    o.output_dir.clear();
    o.command = {"/bin/true", "train_gpt.py", "--deepspeed_config", "ds_config.json"};
    write_text(dir() / "train_gpt.py", "");
  };
  EXPECT_EQ(plan_with("{}", script).dir, dir() / "dsat-results" / "train_gpt");
  fs::create_directories(dir() / "dsat-results" / "train_gpt");
  EXPECT_EQ(plan_with("{}", script).dir, dir() / "dsat-results" / "train_gpt-2");
  fs::create_directories(dir() / "dsat-results" / "train_gpt-2");
  EXPECT_EQ(plan_with("{}", script).dir, dir() / "dsat-results" / "train_gpt-3");
}

TEST_F(PlanTest, ConcurrencyIsWhatSlotsAllow) {
  EXPECT_EQ(plan_with("{}", [](StudyOptions& o) { o.slots_per_trial = 5; }).concurrency(), 3);
  EXPECT_EQ(plan_with("{}", [](StudyOptions& o) { o.max_slots = 4; }).concurrency(), 4);
  EXPECT_EQ(plan_with("{}", [](StudyOptions& o) { o.max_concurrent_trials = 2; }).concurrency(), 2);
}

TEST_F(PlanTest, ABoundOfTheTrainBatchIsOneOfTheMicroBatch) {
  const auto at_most = [](int64_t samples) {
    return [samples](StudyOptions& o) {
      o.slots_per_trial = 4;
      o.max_train_batch_size = samples;
    };
  };
  const std::string accumulating = R"({"gradient_accumulation_steps": 2})";
  EXPECT_EQ(plan_with(accumulating, at_most(100)).space.max_micro_batch, 12);
  EXPECT_EQ(why_not(at_most(7)),
            "--max-train-batch-size 7: the smallest train_batch_size is 8 (micro batch 1 x accumulation 2 x "
            "data-parallel size 4): allow more");
  EXPECT_THAT(why_not([&](StudyOptions& o) {
                at_most(100)(o);
                o.global_batch = 128;
              }),
              HasSubstr("--max-train-batch-size 100 is below --global-batch 128"));
}

TEST_F(PlanTest, TheDataParallelSizeLeavesOutPipelineStages) {
  const Plan plan = plan_with(R"({"pipeline": {"stages": 2}})", [](StudyOptions& o) {
    o.slots_per_trial = 8;
    o.zero_stages = {0, 1};
  });
  EXPECT_EQ(plan.data_parallel_size, 4);
  EXPECT_EQ(plan.base_config["train_batch_size"], 4);
}

TEST_F(PlanTest, WhatTheUserLeavesOpenIsTheSearchersToSay) {
  const Plan plain = plan_of(options("walker")), wishing = plan_of(options("walker_wishing"));
  EXPECT_EQ(plain.zero_stages, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(plain.profile_trials, 3);
  EXPECT_EQ(wishing.zero_stages, (std::vector<int>{0, 3}));
  EXPECT_EQ(wishing.profile_trials, 2);
  StudyOptions given = options("walker_wishing");
  given.zero_stages = {2};
  given.profile_trials = 4;
  const Plan asked = plan_of(given);
  EXPECT_EQ(asked.zero_stages, std::vector<int>{2});
  EXPECT_EQ(asked.profile_trials, 4);
}

TEST_F(PlanTest, SurvivesTheJournal) {
  StudyOptions given = options("walker", {{"ahead", "3"}});
  given.global_batch = 48;
  given.max_micro_batch = 12;
  given.time_budget = std::chrono::minutes(5);
  given.device_memory_bytes = uint64_t{80} << 30;
  given.zero_stages = {3, 1, 1};
  given.command.insert(given.command.end(), {"--batch", "1"});
  given.arg_mappings = {{"train_micro_batch_size_per_gpu", "--batch"}};
  const Plan plan = plan_of(given);
  const Plan back = plan_from_json(Json::parse(to_json(plan).dump()));
  EXPECT_EQ(to_json(back), to_json(plan));
  EXPECT_EQ(back.base_config, plan.base_config);
  EXPECT_EQ(config::to_json(back.space), config::to_json(plan.space));
  EXPECT_EQ(back.searcher.options["ahead"], 3);
  EXPECT_EQ(plan.zero_stages, (std::vector<int>{1, 3}));
}

TEST_F(PlanTest, ADamagedPlanIsAnError) {
  Json json = to_json(plan_of(options()));
  json.erase("seed");
  EXPECT_THAT(error_of([&] { plan_from_json(json); }, DSAT_INTERNAL), HasSubstr("cannot be read: it has no 'seed'"));
  json["seed"] = "x";
  EXPECT_THAT(error_of([&] { plan_from_json(json); }, DSAT_INTERNAL), HasSubstr("its 'seed' is \"x\""));
  json["seed"] = 1;
  for (const Json& shape : {Json(4), Json::array({1e40}), Json::array({"4"}), Json::object({{"a", 4}})}) {
    json["slots"]["shape"] = shape;
    EXPECT_THAT(error_of([&] { plan_from_json(json); }, DSAT_INTERNAL), HasSubstr("its 'shape' is")) << shape;
  }
  json["slots"] = 3;
  EXPECT_THAT(error_of([&] { plan_from_json(json); }, DSAT_INTERNAL), HasSubstr("cannot be read"));
  EXPECT_THAT(error_of([] { plan_from_json(Json()); }, DSAT_INTERNAL), HasSubstr("no JSON object"));
}

TEST_F(PlanTest, AFilesHashIsSha256) {
  write_text(dir() / "abc", "abc");
  EXPECT_EQ(sha256_of_file(dir() / "abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of_file(dir() / "none"), "");
}

}  // namespace
}  // namespace dsat::host
