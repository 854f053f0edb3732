// What the script takes of a step beside the engine, and what of a gain is left by the clock.
#include "finals/end_to_end.h"

#include <gmock/gmock.h>

#include "dsat/config/batch.h"
#include "dsat/host/format.h"
#include "study/watch/script_watch.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Trial measured(uint64_t id, const std::string& identity, int batch, double engine_us, double wall_us) {
  Trial trial;
  trial.identity = identity;
  trial.record.id = id;
  trial.record.outcome = Outcome::completed;
  trial.record.config = {{config::kTrainBatchKey, batch}};
  trial.record.metrics = {{"latency", engine_us}};
  if (wall_us > 0) trial.record.metrics["wall_latency"] = wall_us;
  return trial;
}

const Trial kOwn = measured(0, "own", 4, 3000, 4000);

TEST(EndToEndTest, TheGainByTheClockIsThatOfSamplesASecond) {
  const std::vector<Trial> trials{kOwn, measured(1, "best", 1024, 5400, 600e3), measured(2, "best", 1024, 5400, 560e3)};
  const auto found = end_to_end_of_best(trials, "own", 1);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_script_bound());
  EXPECT_DOUBLE_EQ(found->wall_us, 580e3) << "the mean of the configuration's trials";
  EXPECT_NEAR(*found->ratio, 1024 / 580e3 / (4 / 4000.0), 1e-9);
  EXPECT_THAT(format_end_to_end(*found), AllOf(HasSubstr("580 ms"), HasSubstr("5.4 ms"), HasSubstr("1.8 x")));
}

TEST(EndToEndTest, WithoutTheOwnConfigurationThereIsNoRatio) {
  const std::vector<Trial> trials{kOwn, measured(1, "best", 8, 5400, 6000), measured(2, "other", 8, 5400, 0)};
  EXPECT_FALSE(end_to_end_of_best(trials, "", 1)->ratio);
  EXPECT_FALSE(end_to_end_of_best(trials, "own", 0)->ratio) << "it is the best";
  EXPECT_FALSE(end_to_end_of_best(trials, "other", 1)->ratio) << "measured without a clock";
  EXPECT_FALSE(end_to_end_of_best(trials, "own", 1)->is_script_bound()) << "6 instead of 5.4 ms";
  EXPECT_FALSE(end_to_end_of_best(trials, "own", 2));
}

TEST(ScriptWatchTest, TheFirstTrialThatWaitsIsReportedOnce) {
  ScriptWatch watch;
  EXPECT_FALSE(watch.compare_times(kOwn, "throughput"));
  const Trial waits = measured(1, "a", 64, 4000, 40e3);
  EXPECT_FALSE(watch.compare_times(waits, "wall_throughput")) << "the metric counts it";
  const auto word = watch.compare_times(waits, "throughput");
  ASSERT_TRUE(word);
  EXPECT_THAT(*word, AllOf(HasSubstr("trial 1: "), HasSubstr("takes 40 ms"), HasSubstr("takes 4 ms")));
  EXPECT_THAT(*word, HasSubstr("--metric wall_throughput"));
  EXPECT_FALSE(watch.compare_times(waits, "throughput"));
}

}  // namespace
}  // namespace dsat::host
