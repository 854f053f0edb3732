// A script whose batch does not follow its configuration is distinguished from one whose does, by trials made by hand.
#include "study/watch/batch_watch.h"

#include <gmock/gmock.h>

#include "dsat/config/batch.h"

namespace dsat::host {
namespace {

using ::testing::HasSubstr;

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
  BatchWatch watch;
  std::optional<std::string> word;
  for (const Trial& trial : trials) word = watch.add(trial);
  return word;
}

TEST(BatchWatchTest, TheSameTimeAndMemoryAtFourTimesTheMicroBatchIsReported) {
  const auto word = last_word({measured(1, 2, 10000, 5000000), measured(2, 8, 10300, 5000001)});
  ASSERT_TRUE(word);
  EXPECT_THAT(*word, HasSubstr("trials 1 and 2 took the same time and memory with micro batches 2 and 8"));
  EXPECT_THAT(*word, HasSubstr("--arg-mapping train_micro_batch_size_per_gpu=--FLAG"));
}

TEST(BatchWatchTest, MoreTimeOrMoreMemoryIsABatchThatFollows) {
  EXPECT_FALSE(last_word({measured(1, 2, 10000, 5000000), measured(2, 8, 11000, 5000000)}));
  EXPECT_FALSE(last_word({measured(1, 2, 10000, 5000000), measured(2, 8, 10000, 5001000)}));
  EXPECT_FALSE(last_word({measured(1, 2, 10000, 5000000), measured(2, 6, 10000, 5000000)})) << "too near";
  EXPECT_FALSE(last_word({measured(1, 2, 10000, 5000000), measured(2, 8, 10000, 5000000, 2)})) << "another stage";
}

TEST(BatchWatchTest, WithoutMemoryAnEqualTimeProvesLess) {
  EXPECT_FALSE(last_word({measured(1, 1, 10000, std::nullopt), measured(2, 63, 10000, std::nullopt)}));
  EXPECT_TRUE(last_word({measured(1, 1, 10000, std::nullopt), measured(2, 64, 10000, std::nullopt)}));
  Trial rounded = measured(2, 8, 10000, 5000000);
  rounded.record.peak_source = kPeakOfLog;
  EXPECT_FALSE(last_word({measured(1, 2, 10000, 5000000), rounded})) << "a log's peak is rounded";
}

TEST(BatchWatchTest, ItIsReportedOnceAndByMeasuredTrialsAlone) {
  EXPECT_FALSE(last_word({measured(1, 2, 10000, 5), measured(2, 8, 10000, 5), measured(3, 16, 10000, 5)}));
  Trial information = measured(0, 1, 10000, 5), failed = measured(2, 64, 10000, 5);
  information.model_info = true;
  failed.record.outcome = Outcome::failed;
  EXPECT_FALSE(last_word({information, measured(1, 8, 10000, 5), failed}));
}

TEST(BatchWatchTest, AnyEarlierTrialMayBeTheOneToCompareWith) {
  EXPECT_TRUE(last_word({measured(1, 8, 10000, 5), measured(2, 2, 10000, 5), measured(3, 8, 10000, 5)}));
  const auto word =
      last_word({measured(1, 2, 5000, 5000000), measured(2, 64, 10000, 6000000), measured(3, 256, 9000, 6000000)});
  ASSERT_TRUE(word) << "from 50 samples on the data set is the batch";
  EXPECT_THAT(*word, HasSubstr("trials 2 and 3"));
  EXPECT_THAT(*word, HasSubstr("fewer samples than a batch (--max-micro-batch)"));
}

// It holds Python and its libraries, and a repeated run differs by 2 %.
TEST(BatchWatchTest, AProcessesPeakProvesLessThanADevices) {
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
