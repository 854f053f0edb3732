// Checkpoints: a training that was ended anywhere goes on as if it had not been, at any number of ranks and any stage.
// Losses after a resume are compared with those of a run that was never ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <vector>

#include "trial_program.h"

namespace dsat::trainer::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kGpt = "--model gpt --layers 2 --hidden 32 --heads 2 --seq 16 --vocab 64";

// All that a step depends on has a state: moments, a schedule, clipping.
Json config(int stage, int64_t accumulation, bool bf16 = false) {
  return {{"train_micro_batch_size_per_gpu", 2},
          {"gradient_accumulation_steps", accumulation},
          {"gradient_clipping", 0.5},
          {"bf16", {{"enabled", bf16}}},
          {"optimizer", {{"type", "Adam"}, {"params", {{"lr", 1e-2}, {"weight_decay", 0.1}}}}},
          {"scheduler", {{"type", "WarmupLR"}, {"params", {{"warmup_max_lr", 1e-2}, {"warmup_num_steps", 8}}}}},
          {"zero_optimization", {{"stage", stage}}}};
}

struct Training {
  Ended run(const Json& ds_config, const std::string& options) {
    program.write_raw_config(ds_config.dump());
    return program.run(options + " --checkpoint-dir " + dir().string());
  }
  // Those of the steps that this run makes.
  std::vector<double> losses(const Json& ds_config, const std::string& options, int64_t steps) {
    const Ended ended = run(ds_config, options + " --steps " + std::to_string(steps));
    EXPECT_EQ(ended.status, 0) << ended.err;
    std::vector<double> values;
    std::istringstream lines(ended.out);
    double loss = 0;
    for (std::string line; std::getline(lines, line);) {
      if (std::sscanf(line.c_str(), "step %*d/%*d loss %lf", &loss) == 1) values.push_back(loss);
    }
    return values;
  }
  fs::path dir() const { return program.folder() / "checkpoints"; }
  std::string latest() const {
    std::ifstream in(dir() / "latest");
    return {std::istreambuf_iterator<char>(in), {}};
  }

  TrialProgram program;
};

// Losses of the steps from `first` on.
std::vector<double> uninterrupted(const Json& ds_config, const std::string& options, int64_t first, int64_t steps) {
  Training training;
  const std::vector<double> losses = training.losses(ds_config, options, steps);
  EXPECT_EQ(losses.size(), static_cast<size_t>(steps));
  return {losses.begin() + std::min<int64_t>(first, static_cast<int64_t>(losses.size())), losses.end()};
}

void expect_near(const std::vector<double>& losses, const std::vector<double>& expected, double relative) {
  ASSERT_EQ(losses.size(), expected.size());
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], expected[i], relative * std::abs(expected[i])) << "step " << i;
  }
}

TEST(CheckpointTest, GoesOnWithTheSameLosses) {
  for (int stage : {0, 3}) {
    const Json c = config(stage, 2, /*bf16=*/stage == 3);
    Training training;
    ASSERT_EQ(training.run(c, kGpt + " --ranks 2 --steps 3").status, 0);
    EXPECT_EQ(training.latest(), "step3\n");
    EXPECT_EQ(training.losses(c, kGpt + " --ranks 2", 6), uninterrupted(c, kGpt + " --ranks 2", 3, 6)) << stage;
  }
}

// One rank with four micro steps, then two with two at another stage, then four with one: the same batches.
TEST(CheckpointTest, LoadsAtAnotherWorldSizeAndStage) {
  Training training;
  const std::vector<double> expected = uninterrupted(config(0, 4), kGpt + " --ranks 1", 6, 8);
  ASSERT_EQ(training.run(config(1, 4), kGpt + " --ranks 1 --steps 2").status, 0);
  ASSERT_EQ(training.run(config(3, 2), kGpt + " --ranks 2 --steps 4").status, 0);
  ASSERT_EQ(training.run(config(2, 1), kGpt + " --ranks 4 --steps 6").status, 0);
  expect_near(training.losses(config(0, 4), kGpt + " --ranks 1", 8), expected, 1e-5);
}

// A pipeline of two stages, then of three with another share of ZeRO, then one rank whose engine is no pipeline's.
TEST(CheckpointTest, LoadsAtAnotherNumberOfPipelineStages) {
  Training training;
  const std::vector<double> expected = uninterrupted(config(0, 4), kGpt, 6, 8);
  ASSERT_EQ(training.run(config(1, 2), kGpt + " --ranks 4 --pipeline-stages 2 --steps 3").status, 0);
  ASSERT_EQ(training.run(config(0, 4), kGpt + " --ranks 3 --pipeline-stages 3 --steps 6").status, 0);
  expect_near(training.losses(config(0, 4), kGpt, 8), expected, 1e-5);
}

class KilledCheckpointTest : public ::testing::TestWithParam<const char*> {};

TEST_P(KilledCheckpointTest, BetweenTwoCheckpointsItLosesNothing) {
  Training training;
  const bool is_pipeline = GetParam()[0] != '\0';
  const Json c = config(is_pipeline ? 1 : 2, is_pipeline ? 2 : 1);
  training.program.write_raw_config(c.dump());
  const std::string options = kGpt + " --ranks 2" + GetParam();
  const pid_t pid = training.program.start(options + " --steps 100000 --checkpoint-every 5 --checkpoint-dir " +
                                           training.dir().string());
  ASSERT_TRUE(eventually([&] { return fs::exists(training.dir() / "step10" / "checkpoint.json"); }));
  const std::vector<pid_t> ranks = children_of(pid);
  ::kill(pid, SIGKILL);
  training.program.wait(pid);
  ASSERT_TRUE(eventually(
      [&] { return std::none_of(ranks.begin(), ranks.end(), [](pid_t rank) { return is_running(rank); }); }));
  const int64_t saved = std::stoll(training.latest().substr(4));
  ASSERT_GE(saved, 5);
  EXPECT_EQ(training.losses(c, options, saved + 4), uninterrupted(c, options, saved, saved + 4));
}

INSTANTIATE_TEST_SUITE_P(Engines, KilledCheckpointTest, ::testing::Values("", " --pipeline-stages 2"),
                         [](const auto& info) { return info.index == 0 ? "DataParallel" : "Pipeline"; });

// A fingerprint of all files, so that a change of any is seen.
std::string everything_in(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    files.push_back(entry.path().string() + std::string(std::istreambuf_iterator<char>(in), {}));
  }
  std::sort(files.begin(), files.end());
  std::string all;
  for (const std::string& file : files) all += file;
  return all;
}

TEST(CheckpointTest, ATuningTrialNeitherReadsNorWritesTheUsersCheckpoints) {
  Training training;
  const Json c = config(1, 1);
  ASSERT_EQ(training.run(c, kGpt + " --ranks 2 --steps 4").status, 0);
  const std::string before = everything_in(training.dir());
  training.program.write_config(c, 1, 2);
  const Ended ended =
      training.program.run(kGpt + " --ranks 2 --checkpoint-every 1 --checkpoint-dir " + training.dir().string());
  EXPECT_EQ(ended.status, 0) << ended.err;
  ASSERT_TRUE(training.program.result().has_value());
  EXPECT_EQ(training.program.result()->at("losses"), measure(kGpt + " --ranks 2", c, 1, 2).at("losses"));
  EXPECT_TRUE(everything_in(training.dir()) == before);
}

struct Damage {
  const char* name;
  std::function<void(const fs::path& checkpoint)> inflict;
  std::string options, message;
};

TEST(CheckpointTest, WhatCannotBeLoadedIsOneLineAndLeftAlone) {
  const auto truncate = [](const char* file, std::uintmax_t bytes) {
    return [=](const fs::path& folder) { fs::resize_file(folder / file, bytes); };
  };
  const auto nothing = [](const fs::path&) {};
  const std::vector<Damage> damages = {
      {"truncated shard", truncate("rank_00001.ckpt", 5000), kGpt, "rank_00001.ckpt is truncated"},
      {"truncated description", truncate("checkpoint.json", 20), kGpt, "checkpoint.json is truncated"},
      {"two other bytes",
       [](const fs::path& f) {
         std::fstream file(f / "rank_00000.ckpt", std::ios::in | std::ios::out | std::ios::binary);
         file.seekg(static_cast<std::streamoff>(fs::file_size(f / "rank_00000.ckpt") / 2));
         const std::streamoff middle = file.tellg();
         const auto other = static_cast<char>(~file.get());
         file.seekp(middle);
         file.put(other).put('\x7f');
       },
       kGpt, "rank_00000.ckpt is damaged"},
      {"missing rank", [](const fs::path& f) { fs::remove(f / "rank_00000.ckpt"); }, kGpt,
       "rank_00000.ckpt is missing"},
      {"other version",
       [](const fs::path& f) {
         std::ifstream in(f / "checkpoint.json");
         Json json = Json::parse(in);
         json["version"] = 9;
         std::ofstream(f / "checkpoint.json") << json.dump();
       },
       kGpt, "version 9"},
      {"other model", nothing, "--model gpt --layers 2 --hidden 32 --heads 2 --seq 16 --vocab 65",
       "layer0.tokens is [64,32]"},
      {"longer model", nothing, "--model gpt --layers 3 --hidden 32 --heads 2 --seq 16 --vocab 64",
       "layer3.attention_norm.bias is missing"},
  };
  Training training;
  ASSERT_EQ(training.run(config(1, 1), kGpt + " --ranks 2 --steps 2").status, 0);
  const fs::path healthy = training.program.folder() / "healthy";
  fs::rename(training.dir(), healthy);
  for (const Damage& damage : damages) {
    fs::remove_all(training.dir());
    fs::copy(healthy, training.dir(), fs::copy_options::recursive);
    damage.inflict(training.dir() / "step2");
    const std::string before = everything_in(training.dir());
    const Ended ended = training.run(config(1, 1), damage.options + " --ranks 2 --steps 4");
    EXPECT_EQ(ended.status, 2) << damage.name;
    EXPECT_THAT(ended.last_error_line(), HasSubstr(damage.message)) << damage.name;
    EXPECT_EQ(everything_in(training.dir()), before) << damage.name;
  }
}

TEST(CheckpointTest, AnotherOptimizerIsRefused) {
  Training training;
  ASSERT_EQ(training.run(config(0, 1), kGpt + " --steps 2").status, 0);
  Json sgd = config(0, 1);
  sgd["optimizer"] = {{"type", "SGD"}, {"params", {{"lr", 0.1}}}};
  EXPECT_THAT(training.run(sgd, kGpt + " --steps 4").last_error_line(),
              AllOf(HasSubstr("with Adam"), HasSubstr("SGD")));
}

TEST(CheckpointTest, AFolderThatCannotBeWrittenIsRefusedBeforeTheFirstStep) {
  Training training;
  std::ofstream(training.dir()) << "a file";
  const Ended ended = training.run(config(0, 1), kGpt + " --ranks 2 --steps 1");
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(ended.last_error_line(), HasSubstr("--checkpoint-dir " + training.dir().string()));
}

TEST(CheckpointTest, WithoutTheFileThatNamesItTheLastOneIsGoneOnFrom) {
  Training training;
  const Json c = config(1, 1);
  ASSERT_EQ(training.run(c, kGpt + " --ranks 2 --steps 10 --checkpoint-every 2").status, 0);
  fs::remove(training.dir() / "latest");
  fs::create_directory(training.dir() / "step99");  // of nothing whole
  const Ended ended = training.run(c, kGpt + " --ranks 2 --steps 12");
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("latest is missing"), HasSubstr("step10")));
  EXPECT_THAT(ended.out, HasSubstr("step 11/12"));
  EXPECT_THAT(ended.out, Not(HasSubstr("step 10/12")));
  EXPECT_EQ(training.latest(), "step12\n");
}

TEST(CheckpointTest, ACheckpointThatHasAllStepsLeavesNothingToTrain) {
  Training training;
  ASSERT_EQ(training.run(config(0, 1), kGpt + " --steps 3").status, 0);
  const Ended ended = training.run(config(0, 1), kGpt + " --steps 2");
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.out, AllOf(HasSubstr(training.dir().string()), HasSubstr("3 steps of 2"), HasSubstr("--steps")));
}

// What a save that was killed leaves is neither loaded nor in the way.
TEST(CheckpointTest, AnUnfinishedSaveIsNoCheckpoint) {
  Training training;
  const Json c = config(1, 1);
  ASSERT_EQ(training.run(c, kGpt + " --steps 2").status, 0);
  fs::create_directory(training.dir() / ".step4.unfinished");
  std::ofstream(training.dir() / ".step4.unfinished" / "rank_00000.ckpt") << "torn";
  ASSERT_EQ(training.run(c, kGpt + " --steps 4").status, 0);
  EXPECT_EQ(training.latest(), "step4\n");
  EXPECT_FALSE(fs::exists(training.dir() / ".step4.unfinished"));
  EXPECT_EQ(training.losses(c, kGpt, 6), uninterrupted(c, kGpt, 4, 6));
}

}  // namespace
}  // namespace dsat::trainer::testing
