// Options into a plan: what is resolved before anything runs, and what the journal gives back.
#include "plan/plan.h"

#include <sys/stat.h>

#include <thread>

#include "base/sha256.h"
#include "plan/fit_bucket.h"
#include "plan_fixture.h"
#include "record/abandoned_start.h"
#include "study/results/best_command.h"
#include "study/results/run_dir.h"
#include "support/error_of.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;

// A file that was made for more devices.
TEST_F(PlanTest, APartitionThatDoesNotDivideTheDevicesMovesTheProfile) {
  const Change four = [](StudyOptions& o) { o.slots = o.slots_per_trial = 4; };
  const Plan plan = plan_with(R"({"zero_optimization": {"stage": 3, "mics_shard_size": 16}})", four);
  EXPECT_EQ(config::zero_stage(plan.base_config), 1);
  EXPECT_TRUE(noticed(plan, "starts at stage 1"));
}

TEST_F(PlanTest, ATrainBatchHoldsForOneValueOfAListAtLeast) {
  const Plan plan = plan_with(R"({"train_batch_size": 128, "train_micro_batch_size_per_gpu": [3, 8]})");
  EXPECT_EQ(plan.base_config["train_micro_batch_size_per_gpu"], 3);
}

TEST_F(PlanTest, SequenceParallelismDividesTheWorld) {
  const Change four = [](StudyOptions& o) { o.slots_per_trial = 4; };
  const Plan plan = plan_with(R"({"train_micro_batch_size_per_gpu": 3, "sequence_parallel_size": 2})", four);
  EXPECT_EQ(plan.data_parallel_size, 2);
  EXPECT_EQ(plan.base_config["train_batch_size"], 6);
  EXPECT_THAT(error_of([&] { plan_with(R"({"sequence_parallel_size": 3})", four); }),
              AllOf(HasSubstr("4 slots per trial"), HasSubstr("multiple")));
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
  EXPECT_TRUE(noticed(large, "20000 MB of the 1500 MB"));
  EXPECT_EQ(replaced_bucket(large), 5'000'000'000) << "the user's own trial keeps it";
  EXPECT_EQ(replaced_bucket(plan_with("{}", fast)), 500'000'000) << "DeepSpeed's default takes 2 GB as well";
  const Plan small = plan_with(R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": 5e7}})", fast);
  EXPECT_TRUE(small.space.stages.front().axes.empty());
  EXPECT_EQ(replaced_bucket(small), std::nullopt);
  const Plan listed = plan_with(R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": [5e8, 5e9]}})", fast);
  EXPECT_EQ(Json(listed.space.stages.front().axes.front().values).dump(), "[500000000,5000000000]");
}

TEST_F(PlanTest, AStageThatTheUsersOwnKeysForbidIsNotWhereTheProfileStarts) {
  const Plan plan = plan_with(R"({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}})");
  EXPECT_EQ(plan.base_config["zero_optimization"]["stage"], 3);
  EXPECT_EQ(plan.base_config["zero_optimization"]["offload_param"]["device"], "cpu");
  EXPECT_TRUE(noticed(plan, "offload_param")) << "and this is reported";
  const Plan fine = plan_with(R"({"zero_optimization": {"stage": 1}})");
  EXPECT_EQ(fine.base_config["zero_optimization"]["stage"], 1);
}

TEST_F(PlanTest, AMappingWithoutDashesIsTheFlagOfThatName) {
  const Plan plan = plan_with(R"({"autotuning": {"arg_mappings": {"train_micro_batch_size_per_gpu": " batch"}}})",
                              [](StudyOptions& o) {
                                o.command.insert(o.command.end(), {"--batch", "1"});
                              });
  EXPECT_EQ(plan.arg_mappings.at(0).second, "--batch");
  EXPECT_TRUE(noticed(plan, "flag --batch"));
  const Plan by_option = plan_with("{}", [](StudyOptions& o) {
    o.command.insert(o.command.end(), {"--batch", "1"});
    o.arg_mappings = {{"train_micro_batch_size_per_gpu", "batch"}};
  });
  EXPECT_EQ(by_option.arg_mappings.at(0).second, "--batch");
  for (const char* bad : {"", " ", "-", "--", "--a b", "--a=1"}) {
    write_text(dir() / "ds_config.json",
               Json{{"autotuning", {{"arg_mappings", {{"train_micro_batch_size_per_gpu", bad}}}}}}.dump());
    EXPECT_THAT(why_not([](StudyOptions&) {}), HasSubstr("name a flag")) << bad;
  }
}

TEST_F(PlanTest, AnUnknownKeyThatIsLikeNoKnownOneIsKeptWithANotice) {
  const Plan plan = plan_with(R"({"my_company_secret": {"x": 1}})");
  EXPECT_TRUE(noticed(plan, "my_company_secret"));
  EXPECT_EQ(plan.base_config["my_company_secret"]["x"], 1);
}

TEST_F(PlanTest, AKeyThatANewerDeepSpeedMayKnowIsKeptWithANotice) {
  const Plan plan = plan_with(R"({"zero_optimization": {"zz_of_tomorrow": 2}})");
  EXPECT_TRUE(noticed(plan, "key 'zero_optimization.zz_of_tomorrow'"));
  EXPECT_EQ(plan.base_config["zero_optimization"]["zz_of_tomorrow"], 2);
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

TEST_F(PlanTest, StudiesThatStartAtOneMomentGetFoldersOfTheirOwn) {
  const Change unnamed = [](StudyOptions& o) { o.output_dir.clear(); };
  Plan first = plan_with("{}", unnamed), second = first, third = first;
  const RunLock one = claim_run_dir(first, true);
  const RunLock two = claim_run_dir(second, true);
  EXPECT_EQ(second.dir, first.dir.string() + "-2");
  // One that has locked its folder already, and one that another start has left behind.
  fs::create_directories(first.dir.string() + "-3");
  write_text(first.dir.string() + "-3/dsat.lock", "");
  const RunLock three = claim_run_dir(third, true);
  EXPECT_EQ(third.dir, first.dir.string() + "-3");
}

class PlanOfHosts : public PlanTest {
 protected:
  PlanOfHosts() { write_program(dir() / "deepspeed", "#!/bin/sh\n"); }
  Plan plan_for(
      const std::vector<std::string>& launcher_options, const Change& change = [](StudyOptions&) {}) {
    return plan_with("{}", [&](StudyOptions& o) {
      o.command = {(dir() / "deepspeed").string()};
      o.command.insert(o.command.end(), launcher_options.begin(), launcher_options.end());
      o.command.insert(o.command.end(), {"train.py", "--deepspeed_config", "ds_config.json"});
      change(o);
    });
  }
  static void without_slots(StudyOptions& o) {
    o.slots.reset();
    o.slots_per_trial.reset();
  }
};

// Nobody can read it again, and the launcher reads a file only.
TEST_F(PlanOfHosts, WhatAPipeGaveIsKeptInTheStudysFolderForItsTrials) {
  const std::string text = "# mine\nw1 slots=2\nw2 slots=2\n";
  for (const bool is_option : {true, false}) {
    const std::string name = (dir() / (is_option ? "option" : "command")).string();
    ASSERT_EQ(mkfifo(name.c_str(), 0600), 0);
    std::thread writer([&] { write_text(name, text); });
    const std::vector<std::string> in_command{"--hostfile", name};
    Plan plan = plan_for(is_option ? std::vector<std::string>{} : in_command, [&](StudyOptions& o) {
      without_slots(o);
      if (is_option) o.hostfile = name;
    });
    writer.join();
    EXPECT_EQ(plan.slots.hostfile, name);
    fs::create_directories(plan.dir);
    keep_given_hostfile(plan);
    EXPECT_EQ(plan.slots.hostfile, plan.dir / "dsat.hostfile");
    EXPECT_EQ(read_text(plan.slots.hostfile), text);
    EXPECT_TRUE(plan.slots.size_is_ours) << "the best command names it, too";
    EXPECT_TRUE(is_abandoned_start(plan.dir)) << "a host that dies then leaves no more";
    fs::remove_all(plan.dir);
  }
}

// Else the best command would use every device of the machine, with the batch sizes of fewer.
TEST_F(PlanOfHosts, ALimitOfTheSlotsIsASizeThatTheBestCommandNames) {
  const auto is_ours = [&](const Change& change) { return plan_for({}, change).slots.size_is_ours; };
  EXPECT_FALSE(is_ours(without_slots));
  EXPECT_TRUE(is_ours([](StudyOptions& o) { without_slots(o), o.slots = 2; }));
  EXPECT_TRUE(is_ours([](StudyOptions& o) { without_slots(o), o.max_slots = 1; }));
}

// With --num_gpus the launcher would take the machine's first devices, which a visibility variable left to others.
TEST_F(PlanOfHosts, TheBestCommandStaysOnTheDevicesThatAVariableLeaves) {
  Plan plan = plan_for({}, [](StudyOptions& o) { without_slots(o), o.slots = 2; });
  const CommandTemplate command({plan.command, plan.config_file, {}, plan.cwd, {}});
  const auto best = [&] { return best_command(plan, command, plan.base_config, false); };
  plan.slots.backend = Backend::cuda;
  plan.slots.slots = {{"0", 0, {}}, {"1", 1, {}}};
  EXPECT_THAT(best(), HasSubstr("--num_gpus 2"));
  plan.slots.slots = {{"4", 4, {}}, {"5", 5, {}}};
  EXPECT_THAT(best(), HasSubstr("--include localhost:4,5"));
  plan.slots.backend = Backend::rocr;
  EXPECT_THAT(best(), HasSubstr("--num_gpus 2")) << "it counts those that the variable leaves";
}

TEST_F(PlanOfHosts, TheFullTrainingOfAnExperimentHasItsVariablesOnOtherHosts) {
  write_text(dir() / "hosts", "w1 slots=2\n");
  Plan plan = plan_for({"--hostfile", (dir() / "hosts").string()}, without_slots);
  plan.hyperparameters = Json::object();
  plan.variables = {"CACHE=/x"};
  fs::create_directories(plan.dir);
  const CommandTemplate command({plan.command, plan.config_file, {}, plan.cwd, {}});
  const fs::path file = plan.dir / "best_deepspeed_env";
  EXPECT_THAT(best_command(plan, command, plan.base_config, true), HasSubstr("DS_ENV_FILE=" + file.string() + " "));
  EXPECT_THAT(read_text(file), HasSubstr("CACHE=/x\nDSAT_DS_CONFIG="));
}

TEST_F(PlanOfHosts, AHostfileOfTheCommandThatIsNoneMeansThisMachine) {
  for (const char* name : {"/dev/null", "/job/hostfile"}) {
    const Plan plan = plan_for({"--hostfile", name});
    EXPECT_TRUE(plan.slots.hostfile.empty()) << name;
    EXPECT_FALSE(noticed(plan, "hostfile")) << name;
  }
  const Plan missing = plan_for({"-H", "hosts"});
  EXPECT_TRUE(missing.slots.hostfile.empty());
  EXPECT_TRUE(noticed(missing, "hostfile " + (dir() / "hosts").string() + " "));
  const auto given = [](const char* name) { return [name](StudyOptions& o) { o.hostfile = name; }; };
  EXPECT_TRUE(plan_for({}, given("/job/hostfile")).slots.hostfile.empty()) << "the launcher's default, written out";
  EXPECT_TRUE(plan_for({}, given("/dev/null")).slots.hostfile.empty()) << "as users of the launcher write it";
  EXPECT_THAT(error_of([&] { plan_for({}, given("hosts")); }), HasSubstr("hosts"))
      << "who gives it to dsat-host means other hosts";
}

TEST_F(PlanTest, ALongNameIsCutToOneThatAFolderCanHave) {
  Plan plan = plan_with("{}", [](StudyOptions& o) {
    o.output_dir.clear();
    o.name = std::string(300, 'n');
  });
  EXPECT_EQ(plan.name, std::string(300, 'n'));
  const RunLock lock = claim_run_dir(plan, true);
  EXPECT_EQ(plan.dir, dir() / "dsat-results" / std::string(200, 'n'));
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
  EXPECT_THAT(why_not(at_most(7)), AllOf(HasSubstr("--max-train-batch-size 7"), HasSubstr("train_batch_size is 8"),
                                         HasSubstr("accumulation 2 "), HasSubstr("size 4)")));
  EXPECT_THAT(why_not([&](StudyOptions& o) {
                at_most(100)(o);
                o.global_batch = 128;
              }),
              AllOf(HasSubstr("--max-train-batch-size 100"), HasSubstr("--global-batch 128")));
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

// A launcher, or the command line, may allow fewer trials at once than there are slots for.
TEST_F(PlanTest, AsManyTrialsAtOnceAsBeforeTheJournal) {
  Plan plan = plan_of(options());
  plan.slots.at_once = 7;
  EXPECT_EQ(plan_from_json(to_json(plan)).slots.at_once, 7);
}

TEST_F(PlanTest, ADamagedPlanIsAnError) {
  Json json = to_json(plan_of(options()));
  json.erase("seed");
  EXPECT_THAT(error_of([&] { plan_from_json(json); }, DSAT_INTERNAL), HasSubstr("no 'seed'"));
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
