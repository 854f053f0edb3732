// Options into a plan: what is refused before anything runs.
#include "plan_fixture.h"
#include "support/error_of.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::StartsWith;

TEST_F(PlanTest, RefusesWhatDeepSpeedRefusesWithFileAndKey) {
  const std::string file = (dir() / "ds_config.json").string();
  const auto refusal = [&](const std::string& config) { return error_of([&] { plan_with(config); }); };
  EXPECT_THAT(refusal(R"({"zero_optimization": {"stage": "two"}})"),
              StartsWith(file + ": zero_optimization.stage is \"two"));
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
  EXPECT_THAT(why_not(with_file), AllOf(HasSubstr("--space: "), HasSubstr("space.json")));
  write_text(file, R"({"zero_optimization.zero_hpz_partition_size": [2, 3]})");
  EXPECT_THAT(why_not(with_file),
              AllOf(HasSubstr("--space " + file.string() + ": zero_optimization.zero_hpz_partition_size"),
                    HasSubstr("3"), HasSubstr("4")));
  write_text(file, R"({"zero_optimization.reduce_bucket_size": [-1]})");
  EXPECT_THAT(why_not(with_file),
              StartsWith("--space " + file.string() + ": zero_optimization.reduce_bucket_size is -1"));
}

// DeepSpeed would refuse every trial.
TEST_F(PlanTest, ASwitchIsNoAxisBesideTheSectionThatReplacedIt) {
  const fs::path file = dir() / "space.json";
  const Change with_file = [&](StudyOptions& o) { o.space_file = file; };
  const std::string config = R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})";
  write_text(file, R"({"zero_optimization.cpu_offload": [true, false]})");
  EXPECT_THAT(error_of([&] { plan_with(config, with_file); }),
              AllOf(HasSubstr("space.json"), HasSubstr("refuses both together")));
  write_text(file, R"({"zero_optimization.cpu_offload": [true, false],
                       "zero_optimization.offload_optimizer.device": ["cpu", "none"]})");
  EXPECT_THAT(error_of([&] { plan_with("{}", with_file); }), HasSubstr("refuses both together"));
}

TEST_F(PlanTest, ASingleConfigurationIsNoSearchAndTwoMicroBatchesAreOne) {
  const auto up_to = [](int64_t micro_batch) {
    return [micro_batch](StudyOptions& o) {
      o.zero_stages = {0};
      o.max_micro_batch = micro_batch;
    };
  };
  EXPECT_THAT(why_not(up_to(1)), AllOf(HasSubstr("single configuration"), HasSubstr("(ZeRO stage 0, micro batch 1)")));
  EXPECT_EQ(why_not(up_to(2)), "no error");
}

// Four devices are four ranks of a pipeline of one stage, and one of a pipeline of four.
TEST_F(PlanTest, ABoundOfTheTrainBatchHoldsForThePipelineWithTheFewestRanks) {
  const auto bounded = [this](const char* stages, int64_t most) {
    write_text(dir() / "space.json", std::string(R"({"pipeline.stages": )") + stages + "}");
    return [this, most](StudyOptions& o) {
      o.space_file = dir() / "space.json";
      o.slots_per_trial = 4;
      o.zero_stages = {1};
      o.max_train_batch_size = most;
    };
  };
  for (const char* stages : {"[1, 2, 4]", "[4, 1, 2]"}) {
    EXPECT_EQ(plan_with("{}", bounded(stages, 3)).space.max_micro_batch, 3) << stages;
  }
  EXPECT_EQ(plan_with("{}", bounded("[1, 2]", 8)).space.max_micro_batch, 4);
  const Plan moved = plan_with("{}", bounded("[1, 2, 4]", 3));
  EXPECT_EQ(moved.base_config["pipeline"]["stages"], 2);
  EXPECT_EQ(moved.base_config["train_batch_size"], 2);
  EXPECT_EQ(moved.data_parallel_size, 2);
  EXPECT_TRUE(noticed(moved, "pipeline.stages 2"));
  EXPECT_FALSE(plan_with("{}", bounded("[1, 2, 4]", 4)).base_config.contains("pipeline"));
  EXPECT_THAT(why_not(bounded("[1, 2]", 1)),
              AllOf(HasSubstr("micro batch 1 "), HasSubstr("accumulation 1 "), HasSubstr("data-parallel size 2")));
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
       "--max-micro-batch 4"},
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
      {[](StudyOptions& o) { o.output_dir = "results-\xfe"; }, "UTF-8"},
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
  EXPECT_THAT(with(R"({"zero_optimisation": {"stage": 1}})"), HasSubstr("mean 'zero_optimization'"));
  EXPECT_THAT(with(R"({"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2})"),
              HasSubstr("train_batch_size"));
  EXPECT_THAT(with(R"({"pipeline": {"stages": 2}})"), ::testing::Not(::testing::IsEmpty()));
  fs::remove(dir() / "ds_config.json");
  EXPECT_THAT(why_not([](StudyOptions&) {}), HasSubstr("ds_config.json"));
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
  EXPECT_THAT(why_not(mapping("train_micro_batch_size")), HasSubstr("mean 'train_micro_batch_size_per_gpu'"));
  EXPECT_THAT(why_not(mapping("train_micro_batch_per_gpu")), HasSubstr("mean 'train_micro_batch_size_per_gpu'"));
  EXPECT_THAT(why_not(mapping("my_company.batch")), HasSubstr("key 'my_company.batch'"));
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
              AllOf(HasSubstr("train_micro_batch_size_per_gpu names --batch"), HasSubstr("'data.txt'"),
                    HasSubstr("not a number")));
  EXPECT_THAT(why_not(mapping({"--batch", "--lr", "1"}, micro_batch)),
              AllOf(HasSubstr("'--lr' behind"), HasSubstr("not a value")));
  EXPECT_THAT(why_not(mapping({"--batch", "data.txt"}, overlap)),
              AllOf(HasSubstr("'data.txt' behind"), HasSubstr("not true")));
  plan_with("{}", mapping({"--batch=data.txt"}, micro_batch));
  plan_with(R"({"optimizer": {"type": "Adam"}})", mapping({"--batch", "AdamW"}, "optimizer.type"));
  plan_with("{}", mapping({"--batch", "any.txt"}, "gradient_clipping"));  // no trial writes it
}

TEST_F(PlanTest, RefusesPluginsAndTheirOptionsByName) {
  EXPECT_THAT(why_not([](StudyOptions& o) { o.searcher.plugin = "nonesuch"; }), HasSubstr("no plugin 'nonesuch'"));
  EXPECT_THAT(why_not([](StudyOptions& o) { o.searcher.options["depth"] = 3; }), HasSubstr("--depth"));
  EXPECT_THAT(why_not([](StudyOptions& o) { o.profiler.plugin = fixture_plugin("walker").string(); }),
              HasSubstr("offers no profiler"));
}

}  // namespace
}  // namespace dsat::host
