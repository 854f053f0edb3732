// A script that ignores its batch is distinguished from small models on fast devices and from scripts that follow their
// configuration, by trials made by hand.
#include "finals/ignored_batch.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "dsat/config/batch.h"
#include "finals/gain.h"
#include "finals/ignored_configuration.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A study of trials with growing micro batches and, in turn, other ZeRO stages and other buckets.
class IgnoredBatchTest : public ::testing::Test {
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
  std::optional<std::string> why() const { return proof_of_ignored_configuration(trials_); }

  std::vector<Trial> trials_;
};

TEST_F(IgnoredBatchTest, TheSameTimeWhateverTheConfigurationIsNoticedAndGivesNoGain) {
  for (const int64_t micro_batch : {8, 32, 128, 2048}) measure(micro_batch, 20000);
  EXPECT_FALSE(why()) << "a small model on a fast device may be like this";
  EXPECT_TRUE(gain_over_own(trials_, "throughput", true, "0", 3));
  measure(131072, 20000);
  ASSERT_TRUE(why());
  EXPECT_THAT(*why(), AllOf(HasSubstr("8 (20 ms, trial 0)"), HasSubstr("131072 (20 ms, trial 4)")));
  EXPECT_THAT(*why(), HasSubstr("--arg-mapping train_micro_batch_size_per_gpu=--FLAG, or {micro_batch} in"));
  EXPECT_FALSE(gain_over_own(trials_, "throughput", true, "0", 4));
}

TEST_F(IgnoredBatchTest, EqualMemoryOverSeveralStagesProvesMore) {
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

TEST_F(IgnoredBatchTest, ADeviceThatWaitsForItsLaunchesIsNotRefused) {
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
TEST_F(IgnoredBatchTest, StepsOfAnotherAccumulationAreNotCompared) {
  for (int64_t micro_batch = 1; micro_batch <= 65536; micro_batch *= 4) {
    measure(micro_batch, 20000);
    trials_.back().record.config[config::kAccumulationKey] = 65536 / micro_batch;
    trials_.back().record.config[config::kTrainBatchKey] = 4 * 65536;
  }
  EXPECT_FALSE(why());
}

TEST_F(IgnoredBatchTest, NoiseDefersTheEndButDoesNotHideIt) {
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

Trial measured(uint64_t id, int64_t micro_batch, double latency_us, std::optional<uint64_t> peak_bytes, int stage = 1) {
  Trial trial;
  trial.record.id = id;
  trial.record.outcome = Outcome::completed;
  trial.record.config = {{config::kMicroBatchKey, micro_batch},
                         {config::kTrainBatchKey, micro_batch * 4},
                         {"zero_optimization", {{"stage", stage}}}};
  trial.record.metrics = {{"latency", latency_us}};
  trial.record.peak_bytes = peak_bytes;
  trial.record.peak_source = kPeakOfProbe;
  return trial;
}

std::optional<std::string> last_word(const std::vector<Trial>& trials) {
  IgnoredBatch watch;
  std::optional<std::string> word;
  for (const Trial& trial : trials) word = watch.compare(trial);
  return word;
}

TEST(IgnoredBatchOfTwoTrialsTest, TheSameTimeAndMemoryAtFourTimesTheMicroBatchIsReported) {
  const auto word = last_word({measured(1, 2, 10000, 5000000), measured(2, 8, 10300, 5000001)});
  ASSERT_TRUE(word);
  EXPECT_THAT(*word, AllOf(HasSubstr("trials 1 and 2 "), HasSubstr("time and memory"), HasSubstr("2 and 8")));
  EXPECT_THAT(*word, HasSubstr("--arg-mapping train_micro_batch_size_per_gpu=--FLAG"));
}

TEST(IgnoredBatchOfTwoTrialsTest, MoreTimeOrMoreMemoryIsABatchThatFollows) {
  EXPECT_FALSE(last_word({measured(1, 2, 10000, 5000000), measured(2, 8, 11000, 5000000)}));
  EXPECT_FALSE(last_word({measured(1, 2, 10000, 5000000), measured(2, 8, 10000, 5001000)}));
  EXPECT_FALSE(last_word({measured(1, 2, 10000, 5000000), measured(2, 6, 10000, 5000000)})) << "too near";
  EXPECT_FALSE(last_word({measured(1, 2, 10000, 5000000), measured(2, 8, 10000, 5000000, 2)})) << "another stage";
}

TEST(IgnoredBatchOfTwoTrialsTest, WithoutMemoryAnEqualTimeProvesLess) {
  EXPECT_FALSE(last_word({measured(1, 1, 10000, std::nullopt), measured(2, 63, 10000, std::nullopt)}));
  EXPECT_TRUE(last_word({measured(1, 1, 10000, std::nullopt), measured(2, 64, 10000, std::nullopt)}));
  Trial rounded = measured(2, 8, 10000, 5000000);
  rounded.record.peak_source = kPeakOfLog;
  EXPECT_FALSE(last_word({measured(1, 2, 10000, 5000000), rounded})) << "a log's peak is rounded";
}

TEST(IgnoredBatchOfTwoTrialsTest, ItIsReportedOnceAndByMeasuredTrialsAlone) {
  EXPECT_FALSE(last_word({measured(1, 2, 10000, 5), measured(2, 8, 10000, 5), measured(3, 16, 10000, 5)}));
  Trial information = measured(0, 1, 10000, 5), failed = measured(2, 64, 10000, 5);
  information.model_info = true;
  failed.record.outcome = Outcome::failed;
  EXPECT_FALSE(last_word({information, measured(1, 8, 10000, 5), failed}));
}

TEST(IgnoredBatchOfTwoTrialsTest, AnyEarlierTrialMayBeTheOneToCompareWith) {
  EXPECT_TRUE(last_word({measured(1, 8, 10000, 5), measured(2, 2, 10000, 5), measured(3, 8, 10000, 5)}));
  const auto word =
      last_word({measured(1, 2, 5000, 5000000), measured(2, 64, 10000, 6000000), measured(3, 256, 9000, 6000000)});
  ASSERT_TRUE(word) << "from 50 samples on the data set is the batch";
  EXPECT_THAT(*word, HasSubstr("trials 2 and 3"));
  EXPECT_THAT(*word, AllOf(HasSubstr("fewer samples"), HasSubstr("(--max-micro-batch)")));
}

// It holds Python and its libraries, and a repeated run differs by 2 %.
TEST(IgnoredBatchOfTwoTrialsTest, AProcessesPeakProvesLessThanADevices) {
  const auto of_process = [](uint64_t id, int64_t micro_batch, uint64_t peak_bytes) {
    Trial trial = measured(id, micro_batch, 10000, peak_bytes);
    trial.record.peak_source = kPeakOfProcess;
    return trial;
  };
  EXPECT_TRUE(last_word({of_process(1, 64, 552000000), of_process(2, 1024, 545000000)}));
  EXPECT_FALSE(last_word({of_process(1, 64, 552000000), of_process(2, 1024, 570000000)}));
  EXPECT_FALSE(last_word({of_process(1, 2, 552000000), of_process(2, 16, 552000000)})) << "a small model";
}

}  // namespace
}  // namespace dsat::host
