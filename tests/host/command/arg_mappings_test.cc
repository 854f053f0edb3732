// The flag of a command that a study suggests to map.
#include "command/arg_mappings.h"

#include <gtest/gtest.h>

#include "dsat/config/batch.h"

namespace dsat::host {
namespace {

constexpr const char* kStage = "zero_optimization.stage";

TEST(FlagForKeyTest, TheValueDecidesBeforeTheName) {
  const Argv command{"deepspeed", "train.py", "--total_batch=64", "--batch_size", "4", "--deepspeed_config", "c.json"};
  EXPECT_EQ(flag_for_key(command, config::kMicroBatchKey, 4), "--batch_size");
  EXPECT_EQ(flag_for_key(command, config::kMicroBatchKey, 64), "--total_batch");
  EXPECT_EQ(flag_for_key(command, config::kMicroBatchKey, std::nullopt), "--batch_size");
  EXPECT_EQ(flag_for_key(command, config::kAccumulationKey, 1), "");
}

TEST(FlagForKeyTest, NamesAsScriptsHaveThem) {
  for (const char* flag : {"--batch-size", "--bs", "--mbs", "-b", "--micro_batch_size", "--train_batch_size"}) {
    EXPECT_EQ(flag_for_key({"python3", "t.py", flag, "4"}, config::kMicroBatchKey, 4), flag);
  }
  EXPECT_EQ(flag_for_key({"python3", "t.py", "--grad_accum", "2"}, config::kAccumulationKey, 2), "--grad_accum");
  EXPECT_EQ(flag_for_key({"python3", "t.py", "--zero-stage=1"}, kStage, 1), "--zero-stage");
}

TEST(MegatronFlagsTest, AreTheScriptsOwnAndHaveNumbers) {
  EXPECT_EQ(megatron_flags({"deepspeed", "t.py", "--zero-stage=1", "--deepspeed_config", "c.json"}),
            (ArgMappings{{kStage, "--zero-stage"}}));
  EXPECT_EQ(megatron_flags({"python3", "t.py", "--zero_stage", "3"}), (ArgMappings{{kStage, "--zero_stage"}}));
  EXPECT_EQ(
      megatron_flags({"torchrun", "t.py", "--global-batch-size", "64", "--micro-batch-size", "4"}),
      (ArgMappings{{config::kMicroBatchKey, "--micro-batch-size"}, {config::kTrainBatchKey, "--global-batch-size"}}));
  for (const Argv& none :
       {Argv{"accelerate", "launch", "--zero_stage", "3", "t.py"},  // the launcher's
        Argv{"python3", "t.py", "--zero_stage", "7", "--stage", "1"}, Argv{"python3", "t.py", "--zero_stage"},
        Argv{"python3", "t.py", "--micro-batch-size", "{micro_batch}"}}) {
    EXPECT_EQ(megatron_flags(none), ArgMappings{});
  }
}

TEST(FlagForKeyTest, FlagsOfAnotherMeaningAreLeftOut) {
  EXPECT_EQ(flag_for_key({"t.py", "--eval_batch_size", "4", "--batch", "--layers", "4"}, config::kMicroBatchKey, 4),
            "");
  EXPECT_EQ(flag_for_key({"torchrun", "--nproc_per_node", "4", "t.py"}, config::kMicroBatchKey, 4), "");
  EXPECT_EQ(flag_for_key({"t.py", "--batch_size"}, config::kMicroBatchKey, 4), "") << "no value";
  EXPECT_EQ(flag_for_key({"t.py", "--", "-", "4"}, config::kMicroBatchKey, 4), "");
}

}  // namespace
}  // namespace dsat::host
