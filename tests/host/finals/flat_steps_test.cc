// A script that ignores its configuration is distinguished from small models on fast devices, by trials made by hand.
#include "finals/flat_steps.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "dsat/config/batch.h"
#include "finals/gain.h"

namespace dsat::host {
namespace {

using ::testing::HasSubstr;

// A study of trials with growing micro batches and, in turn, other ZeRO stages and other buckets.
class FlatStepsTest : public ::testing::Test {
 protected:
  void measure(int64_t micro_batch, double latency_us, std::optional<uint64_t> peak_bytes = std::nullopt,
               const char* source = kPeakOfProbe, int stage = -1) {
    const uint64_t id = trials_.size();
    Trial trial;
    trial.record.id = id;
    trial.record.outcome = Outcome::completed;
    trial.record.config = {
        {config::kMicroBatchKey, micro_batch},
        {config::kTrainBatchKey, micro_batch * 4},
        {"zero_optimization", {{"stage", stage < 0 ? static_cast<int>(id % 4) : stage}, {"reduce_bucket_size", id}}}};
    trial.record.metrics = {{"latency", latency_us},
                            {"throughput", 4e6 * static_cast<double>(micro_batch) / latency_us}};
    trial.record.peak_bytes = peak_bytes;
    trial.record.peak_source = peak_bytes ? source : "";
    trial.identity = std::to_string(id);
    trials_.push_back(trial);
  }
  std::optional<std::string> why() const { return why_steps_say_nothing(trials_); }

  std::vector<Trial> trials_;
};

TEST_F(FlatStepsTest, TheSameTimeWhateverTheConfigurationIsNoticedAndGivesNoGain) {
  for (const int64_t micro_batch : {8, 32, 128, 2048}) measure(micro_batch, 20000);
  EXPECT_FALSE(why()) << "a small model on a fast device may be like this";
  EXPECT_TRUE(gain_over_own(trials_, "throughput", true, "0", 3));
  measure(131072, 20000);
  ASSERT_TRUE(why());
  EXPECT_THAT(*why(),
              HasSubstr("the step took the same time at micro batch 8 (20 ms, trial 0) and 131072 (20 ms, trial 4)"));
  EXPECT_THAT(*why(), HasSubstr("--arg-mapping train_micro_batch_size_per_gpu=--FLAG"));
  EXPECT_FALSE(gain_over_own(trials_, "throughput", true, "0", 4));
}

TEST_F(FlatStepsTest, EqualMemoryOverSeveralStagesProvesMore) {
  for (const int64_t micro_batch : {1, 2, 4, 8, 16}) measure(micro_batch, 20000, 5000000);
  EXPECT_TRUE(why());
  trials_.clear();
  for (const int64_t micro_batch : {1, 2, 4, 8, 16}) measure(micro_batch, 20000, 5000000, kPeakOfProcess);
  EXPECT_FALSE(why()) << "a small batch hides in a process's peak";
  measure(512, 20000, 5000000, kPeakOfProcess);
  EXPECT_TRUE(why());
  trials_.clear();
  for (const int64_t micro_batch : {1, 2, 4, 8, 16}) measure(micro_batch, 20000, 5000000, kPeakOfProbe, 1);
  EXPECT_FALSE(why()) << "no stage was changed";
}

TEST_F(FlatStepsTest, ADeviceThatWaitsForItsLaunchesIsNotRefused) {
  // Until 1,000 samples the launches take the time; each sample takes memory.
  for (int64_t micro_batch = 1; micro_batch < 100000; micro_batch *= 3) {
    measure(micro_batch, 5000 + 5 * static_cast<double>(micro_batch), 50000000 + 100000 * micro_batch);
    EXPECT_FALSE(why()) << micro_batch;
  }
  trials_.clear();
  for (int64_t micro_batch = 1; micro_batch < 100000; micro_batch *= 3) {
    measure(micro_batch, 5000 + 5 * static_cast<double>(micro_batch));
    EXPECT_FALSE(why()) << micro_batch << ", no memory is known";
  }
  trials_.clear();
  for (int64_t micro_batch = 8; micro_batch < 1e7; micro_batch *= 8) measure(micro_batch, 20000);
  trials_.push_back(trials_.back());
  trials_.back().record.id = trials_.size() - 1;
  trials_.back().record.outcome = Outcome::out_of_memory;
  EXPECT_FALSE(why()) << "it ran out of memory, so the script reads what it is given";
}

// With a fixed global batch the accumulation falls as the micro batch grows.
TEST_F(FlatStepsTest, StepsOfAnotherAccumulationAreNotCompared) {
  for (int64_t micro_batch = 1; micro_batch <= 65536; micro_batch *= 4) {
    measure(micro_batch, 20000);
    trials_.back().record.config[config::kAccumulationKey] = 65536 / micro_batch;
    trials_.back().record.config[config::kTrainBatchKey] = 4 * 65536;
  }
  EXPECT_FALSE(why());
}

TEST_F(FlatStepsTest, NoiseDefersTheEndButDoesNotHideIt) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (const double noise : {0.02, 0.1, 0.3}) {
    trials_.clear();
    for (int64_t micro_batch = 8; !why() && micro_batch < 10000000; micro_batch = micro_batch * 5 / 2) {
      measure(micro_batch, 20000 * std::exp(noise * normal(random)));
    }
    EXPECT_TRUE(why()) << noise;
  }
}

}  // namespace
}  // namespace dsat::host
