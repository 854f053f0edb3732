// Trials that ran something else than asked: when they prove that a script ignores its configuration.
#include "finals/ignored_configuration.h"

#include <gmock/gmock.h>

#include "dsat/config/batch.h"
#include "study/state/best.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class IgnoredConfigurationTest : public ::testing::Test {
 protected:
  Trial& add(int64_t micro_batch, const std::string& inputs = "", int stage = 1) {
    Trial& trial = trials_.emplace_back();
    trial.record.id = trials_.size() - 1;
    trial.record.outcome = Outcome::completed;
    trial.record.config = {{config::kMicroBatchKey, micro_batch},
                           {config::kTrainBatchKey, micro_batch * 2},
                           {"zero_optimization", {{"stage", stage}}}};
    trial.record.metrics = {{"throughput", 10.0 * static_cast<double>(micro_batch)}};
    trial.identity = std::to_string(trial.id());
    trial.end.emplace().inputs = inputs;
    return trial;
  }
  void deviate(int64_t micro_batch, const std::string& key, int64_t had, const std::string& inputs = "",
               int stage = 1) {
    Trial& trial = add(micro_batch, inputs, stage);
    trial.record.outcome = Outcome::failed;
    trial.record.metrics = Json();
    trial.end->deviation = Deviation{key, had, false};
  }
  std::optional<IgnoredKey> found() const {
    IgnoredConfiguration script;
    for (const Trial& trial : trials_) script.add(trial);
    return script.find();
  }
  bool has_best() const { return choose_best(trials_, "throughput", true, std::nullopt).has_value(); }

  std::vector<Trial> trials_;
};

TEST_F(IgnoredConfigurationTest, TheSecondTrialWithABatchOfTheScriptsOwnIsTheProof) {
  add(4, "4x128");
  deviate(6, config::kMicroBatchKey, 4);
  EXPECT_TRUE(has_best());
  deviate(4224, config::kMicroBatchKey, 4);
  const auto ignored = found();
  ASSERT_TRUE(ignored);
  EXPECT_EQ(ignored->key, config::kMicroBatchKey);
  EXPECT_EQ(ignored->had, 4);
  EXPECT_THAT(describe(*ignored, "--batch_size"),
              AllOf(HasSubstr("trials 1 and 2"), HasSubstr("batches of 4"),
                    HasSubstr("--arg-mapping train_micro_batch_size_per_gpu=--batch_size")));
  EXPECT_FALSE(has_best()) << "nothing is handed back";
}

TEST_F(IgnoredConfigurationTest, OneShapeWhateverTheMicroBatchIsTheProof) {
  add(4, "4x128.4");
  EXPECT_FALSE(found());
  add(8, "4x128.4");
  ASSERT_TRUE(found());
  EXPECT_THAT(found()->evidence, AllOf(HasSubstr("4x128.4"), HasSubstr("4 (trial 0)"), HasSubstr("8 (trial 1)")));
  add(16, "16x128.16");
  EXPECT_FALSE(found()) << "the script has been mended, or has a limit of its own";
}

TEST_F(IgnoredConfigurationTest, TheSameMicroBatchAgainProvesNothing) {
  add(4, "4x128");
  add(4, "4x128", 3);
  EXPECT_FALSE(found());
}

TEST_F(IgnoredConfigurationTest, ALimitOfTheScriptsOwnIsACeilingAndNoProof) {
  for (const int64_t micro_batch : {1, 8, 64}) add(micro_batch, std::to_string(micro_batch) + "x128");
  deviate(96, config::kMicroBatchKey, 64, "64x128");
  deviate(128, config::kMicroBatchKey, 64, "64x128");
  EXPECT_FALSE(found());
  EXPECT_TRUE(has_best());
}

TEST_F(IgnoredConfigurationTest, ASmallDataSetIsACeilingAndNoProof) {
  for (const int64_t micro_batch : {256, 512}) {
    deviate(micro_batch, config::kMicroBatchKey, 200, "200x8");
    trials_.back().end->deviation->of_data_set = true;
  }
  EXPECT_FALSE(found());
}

TEST_F(IgnoredConfigurationTest, StageAccumulationAndRanksAreProvedByTwoTrials) {
  add(4, "", 1);
  deviate(4, "zero_optimization.stage", 1, "", 2);
  EXPECT_FALSE(found());
  deviate(8, "zero_optimization.stage", 1, "", 3);
  ASSERT_TRUE(found());
  EXPECT_EQ(found()->key, "zero_optimization.stage");
  add(8, "", 3);
  EXPECT_FALSE(found()) << "a trial at stage 3 ran at stage 3";
  trials_.clear();
  deviate(4, kDataParallelSize, 1);
  deviate(8, kDataParallelSize, 1);
  ASSERT_TRUE(found());
  EXPECT_THAT(describe(*found(), ""), HasSubstr("--slots-per-trial 1"));
}

TEST_F(IgnoredConfigurationTest, SmallMicroBatchesThatDivideTheScriptsOwnProveNothing) {
  add(1);
  add(2);
  deviate(6, config::kMicroBatchKey, 4);
  deviate(8, config::kMicroBatchKey, 4);
  EXPECT_TRUE(found());
  add(3);
  EXPECT_FALSE(found());
}

}  // namespace
}  // namespace dsat::host
