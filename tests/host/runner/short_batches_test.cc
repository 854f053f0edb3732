// A data set with fewer samples than a batch: what its batches held stands in the probe's files, and its figures, which
// count full batches, are none.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "host/runner/support.h"
#include "runner/classify.h"
#include "runner/probe.h"
#include "runner/trial_files.h"

namespace dsat::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ShortBatches : public TempDirTest {
 protected:
  ShortBatches() {
    std::filesystem::create_directory(dir() / kProbeFolder);
    write_text(dir() / kMetricsFile, R"({"latency": 1000, "throughput": 512000})");
    facts_.trial_dir = dir();
    facts_.config = {
        {"train_micro_batch_size_per_gpu", 256}, {"gradient_accumulation_steps", 2}, {"train_batch_size", 512}};
    facts_.exit = {0, 0};
    facts_.end_profile_step = 5;  // ten batches
  }
  void rank_is(int rank, const std::string& batches) {
    write_text(dir() / kProbeFolder / fmt::format("rank{}.json", rank),
               fmt::format(R"({{"schema": 1, "rank": {}, "world_size": 2, "torch": "2.4.0", "deepspeed": null,
                              "device": {{"type": "cuda", "total_bytes": 9000, "max_allocated_bytes": 700,
                              "allocator_retries": 0}}, "process": null, "batches": {}}})",
                           rank, batches));
  }
  TrialEnd end() const { return classify(facts_); }

  RunFacts facts_;
};

TEST_F(ShortBatches, AreAFailureThatNamesTheirSize) {
  rank_is(0, R"({"256": {"samples": 200, "count": 12}})");
  const TrialEnd failed = end();
  EXPECT_EQ(failed.outcome, Outcome::failed);
  EXPECT_EQ(failed.reason, "a rank's data set has fewer samples than the micro batch: its fullest batch held 200");
  ASSERT_TRUE(failed.deviation);
  EXPECT_TRUE(failed.deviation->of_data_set);
  EXPECT_TRUE(failed.metrics.empty());
  EXPECT_EQ(failed.device_memory_bytes, 9000u);
  EXPECT_THAT(failed.warnings, IsEmpty());
}

TEST_F(ShortBatches, OfEverySizeHaveOneReason) {
  rank_is(0, R"({"256": {"samples": 200, "count": 12}})");
  const std::string reason = end().reason;
  facts_.config["train_micro_batch_size_per_gpu"] = 512;
  rank_is(0, R"({"512": {"samples": 200, "count": 12}})");
  EXPECT_EQ(end().reason, reason);
}

TEST_F(ShortBatches, AreNoneWhereOneWasFull) {
  for (const char* batches : {R"({"256": {"samples": 256, "count": 12}})", "{}", "null",
                              // of a validation set, while the script makes its own batches for training
                              R"({"256": {"samples": 200, "count": 9}})", R"({"64": {"samples": 20, "count": 100}})"}) {
    rank_is(0, batches);
    EXPECT_EQ(end().outcome, Outcome::completed) << batches;
  }
  rank_is(0, R"({"256": {"samples": 200, "count": 12}})");
  rank_is(1, R"({"256": {"samples": 256, "count": 12}})");
  EXPECT_EQ(end().outcome, Outcome::completed) << "the fullest batch of all ranks counts";
}

TEST_F(ShortBatches, SayNothingOfTheModelsInformation) {
  facts_.model_info = true;
  write_text(dir() / kModelInfoFile, R"({"num_params": 10, "trainable_num_params": 10})");
  rank_is(0, R"({"256": {"samples": 200, "count": 12}})");
  EXPECT_EQ(end().outcome, Outcome::completed);
}

TEST_F(ShortBatches, WhatIsNoneLeavesTheFileOut) {
  for (const char* bad : {"7", "[]", R"({"x": {"samples": 1, "count": 1}})", R"({"-1": {"samples": 1, "count": 1}})",
                          R"({"256": 7})", R"({"256": {"samples": -1, "count": 1}})", R"({"256": {"samples": 1}})",
                          R"({"99999999999": {"samples": 1, "count": 1}})"}) {
    rank_is(0, bad);
    EXPECT_EQ(end().outcome, Outcome::completed) << bad;
    EXPECT_THAT(end().warnings, ElementsAre(HasSubstr("left out rank0.json"))) << bad;
  }
}

}  // namespace
}  // namespace dsat::host
