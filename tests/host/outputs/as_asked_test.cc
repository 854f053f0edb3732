// What a trial's engines and loaders show of its batch, beside what its configuration asks for.
#include "outputs/as_asked.h"

#include <gmock/gmock.h>

#include "dsat/config/batch.h"

namespace dsat::host {
namespace {

constexpr int kWindow = 5;

Json asked(int64_t micro_batch, int64_t accumulation = 1, int64_t ranks = 2, int stage = 2) {
  return {{config::kMicroBatchKey, micro_batch},
          {config::kAccumulationKey, accumulation},
          {config::kTrainBatchKey, micro_batch * accumulation * ranks},
          {"zero_optimization", {{"stage", stage}}}};
}

ProbeReport with_engine(EngineRun engine) {
  ProbeReport report;
  report.engines.push_back(std::move(engine));
  return report;
}

// An engine that ran as `asked(micro_batch)` has it, and was fed these shapes.
ProbeReport fed(int64_t micro_batch, const std::string& inputs) {
  return with_engine({micro_batch, 1, micro_batch * 2, 2, 6, inputs});
}

ProbeReport loaded(std::map<uint64_t, LoadedBatches> batches) {
  ProbeReport report;
  report.batches = std::move(batches);
  return report;
}

std::optional<int64_t> had_batch(int64_t micro_batch, const ProbeReport& report) {
  const auto found = find_deviation(asked(micro_batch), report, kWindow);
  if (!found) return std::nullopt;
  EXPECT_EQ(found->key, config::kMicroBatchKey);
  return found->had;
}

TEST(AsAskedTest, NothingSeenIsNoDeviation) { EXPECT_FALSE(find_deviation(asked(64), ProbeReport(), kWindow)); }

TEST(AsAskedTest, TheEnginesOwnSettingsAreCompared) {
  const auto key_of = [](const EngineRun& engine) {
    const auto found = find_deviation(asked(4, 2), with_engine(engine), kWindow);
    return found ? found->key + " " + std::to_string(found->had) : "";
  };
  EXPECT_EQ(key_of({4, 2, 16, 2, 6, ""}), "");
  EXPECT_EQ(key_of({8, 2, 32, 2, 6, ""}), "train_micro_batch_size_per_gpu 8");
  EXPECT_EQ(key_of({4, 1, 8, 2, 6, ""}), "gradient_accumulation_steps 1");
  EXPECT_EQ(key_of({4, 2, 16, 0, 6, ""}), "zero_optimization.stage 0");
  EXPECT_EQ(key_of({4, 2, 8, 2, 6, ""}), "data_parallel_size 1");
  EXPECT_EQ(key_of({std::nullopt, std::nullopt, std::nullopt, std::nullopt, 6, ""}), "") << "another version";
}

TEST(AsAskedTest, OneEngineOfSeveralMayBeTheOneThatIsTuned) {
  ProbeReport report = with_engine({1, 1, 2, 0, 6, "1x8"});
  report.engines.push_back({4, 1, 8, 2, 6, "4x8"});
  EXPECT_FALSE(find_deviation(asked(4), report, kWindow));
}

TEST(AsAskedTest, AnElasticEngineChoosesItsBatch) {
  Json config = asked(4);
  config["elasticity"] = {{"enabled", true}};
  EXPECT_FALSE(find_deviation(config, with_engine({8, 1, 16, 2, 6, "8x128"}), kWindow));
}

TEST(AsAskedTest, ABatchOfTheScriptsOwnIsSeenInWhatTheEngineIsFed) {
  EXPECT_EQ(had_batch(4224, fed(4224, "4x128.4x128")), 4);
  EXPECT_EQ(had_batch(8, fed(8, "4x128")), 4);
  EXPECT_EQ(had_batch(8, fed(8, "4x_")), 4) << "each batch has its length";
  EXPECT_EQ(had_batch(6, fed(6, "8")), 8);
  EXPECT_EQ(had_batch(8, fed(8, "1.4x128")), 4) << "a number of the step beside the batch";
  EXPECT_EQ(had_batch(4224, fed(4224, "1x1024")), 1);
}

TEST(AsAskedTest, WhatFollowsTheMicroBatchIsNoDeviation) {
  for (const char* inputs : {"10x128.10x128", "128x10", "20x128", "1.10x3x224x224", "10", "10x_"}) {
    EXPECT_FALSE(had_batch(10, fed(10, inputs))) << inputs;
  }
}

TEST(AsAskedTest, WhatMayFollowIsNoDeviation) {
  for (const char* inputs : {"", "_x_", "_x4", "1x1280", "1x_", "1280x512", "80x3"}) {
    EXPECT_FALSE(had_batch(10, fed(10, inputs))) << inputs;
  }
}

TEST(AsAskedTest, ALoadersBatchMayBecomeOneRow) {
  ProbeReport report = fed(10, "1x4096");
  EXPECT_EQ(had_batch(10, report), 1);
  report.batches = {{10, {10, 6}}};
  EXPECT_FALSE(had_batch(10, report));
  report = fed(10, "4x128");
  report.batches = {{10, {10, 6}}};
  EXPECT_EQ(had_batch(10, report), 4) << "the script uses a part of each batch";
}

TEST(AsAskedTest, WithoutAnEngineLoadersCount) {
  EXPECT_EQ(had_batch(4224, loaded({{4, {4, 7}}})), 4);
  EXPECT_EQ(had_batch(64, loaded({{64, {64, 1}}, {32, {32, 1}}, {16, {16, 7}}})), 16) << "a batch finder";
  EXPECT_FALSE(had_batch(4, loaded({{4, {4, 7}}})));
  EXPECT_FALSE(had_batch(4, loaded({{4, {3, 3}}}))) << "short, but few";
  EXPECT_FALSE(had_batch(4, loaded({{8, {8, 7}}}))) << "the batch of both ranks";
  EXPECT_FALSE(had_batch(4, loaded({{4, {4, 7}}, {100, {100, 20}}}))) << "an evaluation beside";
  EXPECT_FALSE(had_batch(8, loaded({{4, {4, 2}}}))) << "too few to be the training's";
  EXPECT_FALSE(had_batch(8, loaded({{4, {4, 100}}}))) << "an evaluation";
  EXPECT_FALSE(had_batch(16, loaded({{1, {1, 7}}}))) << "an item may be a batch";
  EXPECT_FALSE(had_batch(16, loaded({{1024, {1024, 7}}}))) << "cut into micro batches";
  const auto found = find_deviation(asked(4, 8), loaded({{32, {32, 5}}}), kWindow);
  EXPECT_FALSE(found) << "the batch of a whole step";
}

TEST(AsAskedTest, ADataSetBelowTheMicroBatchIsTheReason) {
  const auto found = find_deviation(asked(256), loaded({{256, {200, 6}}}), kWindow);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->of_data_set);
  EXPECT_THAT(describe(*found), ::testing::HasSubstr("fullest batch held 200"));
  EXPECT_FALSE(find_deviation(asked(256), loaded({{256, {200, 4}}}), kWindow)) << "too few to tell";
}

TEST(AsAskedTest, TheReasonNamesTheKeyAndWhatItHad) {
  EXPECT_THAT(describe({config::kMicroBatchKey, 4}), ::testing::HasSubstr("4 samples"));
  EXPECT_THAT(describe({"zero_optimization.stage", 1}), ::testing::HasSubstr("zero_optimization.stage 1"));
  EXPECT_THAT(describe({kDataParallelSize, 1}), ::testing::HasSubstr("data-parallel size of 1"));
}

TEST(AsAskedTest, InputsThatShowNoBatchAreNone) {
  EXPECT_EQ(inputs_seen(fed(4, "4x128.4")), "4x128.4");
  EXPECT_EQ(inputs_seen(fed(4, "4x_")), "4x_");
  EXPECT_EQ(inputs_seen(fed(4, "1x512")), "1x512");
  for (const char* inputs : {"1x_", "_x128", "_x_.1", ""}) EXPECT_EQ(inputs_seen(fed(4, inputs)), "") << inputs;
  EXPECT_EQ(inputs_seen(ProbeReport()), "");
}

}  // namespace
}  // namespace dsat::host
