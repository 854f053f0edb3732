// From the command line to the options of a study: every setting arrives, every wrong value is named.
#include "options/study_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/host_options.h"
#include "support/error_of.h"

namespace dsat::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

host::StudyOptions read(const Tokens& arguments) {
  const OptionSet set = tune_options();
  return study_options(Values(set, split(set, arguments, Grammar::command).options));
}

std::string refusal(const Tokens& arguments) {
  return error_of([&] { read(arguments); });
}

TEST(StudyOptions, DefaultsAreTheLibrarys) {
  const host::StudyOptions options = read({}), defaults;
  EXPECT_EQ(options.max_trials, 50);
  EXPECT_EQ(options.max_concurrent_trials, 16);
  EXPECT_EQ(options.metric, "FLOPS_per_gpu");
  EXPECT_THAT(options.zero_stages, IsEmpty()) << "the searcher's to say";
  EXPECT_EQ(options.seed, 42u);
  EXPECT_EQ(options.start_profile_step, 3);
  EXPECT_EQ(options.end_profile_step, 5);
  EXPECT_FALSE(options.profile_trials);
  EXPECT_EQ(options.trial_timeout, defaults.trial_timeout);
  EXPECT_FALSE(options.slots);
}

TEST(StudyOptions, EverySettingWithAnOptionIsOnTheCommandLine) {
  const OptionSet set = tune_options();
  for (const std::string& name : setting_option_names()) {
    const Option* option = set.find("--" + name);
    ASSERT_NE(option, nullptr) << name;
    EXPECT_EQ(option->help, setting_option(name).help);
  }
  EXPECT_EQ(set.find("--trial-timeout")->default_shown, "30m");
  EXPECT_EQ(set.find("--no-progress-timeout")->default_shown, "10m");
}

TEST(StudyOptions, EveryOptionReachesItsMember) {
  const host::StudyOptions options =
      read({"-mt", "16", "-mct", "4", "-ms", "8", "-m", "latency", "-z", "3", "0", "3", "-r", "7"});
  EXPECT_EQ(options.max_trials, 16);
  EXPECT_EQ(options.max_concurrent_trials, 4);
  EXPECT_EQ(options.max_slots, 8);
  EXPECT_EQ(options.metric, "latency");
  EXPECT_THAT(options.zero_stages, ElementsAre(0, 3));
  EXPECT_EQ(options.seed, 7u);
}

TEST(StudyOptions, SizesOfBatchesReachTheirMembers) {
  const host::StudyOptions options = read({"--global-batch", "64", "--max-train-batch-size", "128", "--min-micro-batch",
                                           "2", "--max-micro-batch", "32", "--space", "space.json"});
  EXPECT_EQ(options.global_batch, 64);
  EXPECT_EQ(options.max_train_batch_size, 128);
  EXPECT_EQ(options.min_micro_batch, 2);
  EXPECT_EQ(options.max_micro_batch, 32);
  EXPECT_EQ(options.space_file, "space.json");
}

TEST(StudyOptions, SettingsOfTrialsReachTheirMembers) {
  const host::StudyOptions options =
      read({"--slots",          "4",       "--slots-per-trial",    "2",   "--device-memory",    "96MiB",
            "--ds-config",      "ds.json", "--start-profile-step", "1",   "--end-profile-step", "1",
            "--trial-cwd",      "copy",    "--output-dir",         "out", "--runner",           "local",
            "--profile-trials", "1"});
  EXPECT_EQ(options.slots, 4);
  EXPECT_EQ(options.slots_per_trial, 2);
  EXPECT_EQ(options.device_memory_bytes, 96u << 20);
  EXPECT_EQ(options.ds_config, "ds.json");
  EXPECT_EQ(options.end_profile_step, 1);
  EXPECT_EQ(options.trial_cwd, host::TrialCwd::copy);
  EXPECT_EQ(options.output_dir, "out");
  EXPECT_EQ(options.profile_trials, 1);
}

TEST(StudyOptions, TheMemoryProbeIsASwitch) {
  EXPECT_TRUE(read({}).probe);
  EXPECT_FALSE(read({"--no-probe"}).probe);
}

TEST(StudyOptions, TimesReachTheirMembers) {
  const host::StudyOptions options =
      read({"--trial-timeout", "90", "--no-progress-timeout", "15m", "--time-budget", "2h"});
  EXPECT_EQ(options.trial_timeout, std::chrono::seconds(90));
  EXPECT_EQ(options.no_progress_timeout, std::chrono::minutes(15));
  EXPECT_EQ(options.time_budget, std::chrono::hours(2));
}

TEST(StudyOptions, SlotsMayBeLeftToTheMachine) { EXPECT_FALSE(read({"--slots", "auto"}).slots); }

TEST(StudyOptions, SizesOfATrialAreReadInBothSpellings) {
  for (const Tokens& given : {Tokens{"--num-gpus", "2"}, Tokens{"--num-gpus=2"}, Tokens{"--num_gpus", "2"},
                              Tokens{"--num_gpus=2"}, Tokens{"--num_accelerators", "2"}}) {
    EXPECT_THAT(read(given).num_gpus, ElementsAre(2)) << given[0];
  }
  EXPECT_THAT(read({"--num_nodes=1,4", "--num-gpus", "8"}).num_nodes, ElementsAre(1, 4));
  for (const char* bad : {"two", "0", "-2", "1.5", "2,", ",2", "1 2", "+1", "99999999999"}) {
    for (const char* option : {"--num-gpus", "--num_gpus"}) {
      EXPECT_THAT(refusal({option, bad}), HasSubstr("--num-gpus: '" + std::string(bad) + "' is no number")) << bad;
    }
    EXPECT_THAT(refusal({"--num_nodes", bad}), HasSubstr("--num-nodes: '" + std::string(bad) + "' is no number"));
  }
}

TEST(StudyOptions, ShortNamesOfSeveralLettersAreRead) {
  const host::StudyOptions options = read({"-mt", "3", "-mct=2", "-ms", "4", "-r", "7", "-z", "1", "3"});
  EXPECT_EQ(options.max_trials, 3);
  EXPECT_EQ(options.max_concurrent_trials, 2);
  EXPECT_EQ(options.max_slots, 4);
  EXPECT_EQ(options.seed, 7u);
  EXPECT_THAT(options.zero_stages, ElementsAre(1, 3));
}

TEST(StudyOptions, PatternsOfAShortageAddUp) {
  EXPECT_THAT(read({"--oom-pattern", "pool \\d+", "--oom-pattern", "full$"}).oom_patterns,
              ElementsAre("pool \\d+", "full$"));
}

TEST(StudyOptions, ArgMappingsAreKeyAndFlag) {
  EXPECT_THAT(read({"--arg-mapping", "a.b=--flag", "--arg-mapping", "c=-d=e"}).arg_mappings,
              ElementsAre(Pair("a.b", "--flag"), Pair("c", "-d=e")));
  for (const char* text : {"key", "=--flag", "key=", "="}) {
    EXPECT_THAT(refusal({"--arg-mapping", text}), HasSubstr("is no KEY=FLAG")) << text;
  }
}

TEST(StudyOptions, BadValuesNameTheOption) {
  const std::vector<Tokens> cases{{"--max-trials", "0"},
                                  {"--max-concurrent-trials", "0"},
                                  {"--max-slots", "-1"},
                                  {"--slots", "0"},
                                  {"--slots", "all"},
                                  {"--slots-per-trial", "0"},
                                  {"--global-batch", "0"},
                                  {"--max-train-batch-size", "x"},
                                  {"--min-micro-batch", "0"},
                                  {"--max-micro-batch", "1.5"},
                                  {"--random-seed", "-1"},
                                  {"--start-profile-step", "-1"},
                                  {"--end-profile-step", "x"},
                                  {"--profile-trials", "0"},
                                  {"--device-memory", "much"},
                                  {"--trial-timeout", "0"},
                                  {"--no-progress-timeout", "-5m"},
                                  {"--time-budget", "1y"},
                                  {"--trial-cwd", "move"},
                                  {"--runner", "kubernetes"}};
  for (const Tokens& arguments : cases) EXPECT_THAT(refusal(arguments), HasSubstr(arguments[0])) << arguments[0];
}

TEST(StudyOptions, AnUnknownRunnerIsRefused) { EXPECT_THAT(refusal({"--runner", "kubernetes"}), HasSubstr("slurm")); }

TEST(StudyOptions, ASimulationNeedsItsFileAndHasNothingToTrain) {
  EXPECT_THAT(refusal({"--runner", "sim"}), HasSubstr("needs --sim FILE"));
  EXPECT_THAT(refusal({"--sim", "cluster.json"}), HasSubstr("needs --runner sim"));
  EXPECT_THAT(refusal({"--runner", "sim", "--sim", "/nowhere.json"}), HasSubstr("/nowhere.json"));
  EXPECT_THAT(refusal({"--runner", "sim", "--sim", "cluster.json", "--run-full-experiment"}),
              HasSubstr("--run-full-experiment: a simulation"));
}

TEST(ResumeOptions, AreTheLimits) {
  const OptionSet set = resume_options();
  const host::ResumeOptions options = resume_options(Values(
      set, split(set, {"-mt", "9", "-mct", "2", "--time-budget", "5m", "--budget", "3gpuh", "--plugin-timeout", "5m"},
                 Grammar::operands)
               .options));
  EXPECT_EQ(options.max_trials, 9);
  EXPECT_EQ(options.max_concurrent_trials, 2);
  EXPECT_EQ(options.time_budget, std::chrono::minutes(5));
  EXPECT_EQ(options.budget, "3gpuh");
  EXPECT_EQ(options.plugin_timeout, std::chrono::minutes(5));
}

}  // namespace
}  // namespace dsat::cli
