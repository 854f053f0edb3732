// Files that were written for other machines, programs and versions are tuned, each with a line about what is odd.
#include "plan_fixture.h"

namespace dsat::host {
namespace {

TEST_F(PlanTest, BatchSizesOfAnotherNumberOfDevicesFollowTheMicroBatch) {
  const Plan plan =
      plan_with(R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2})",
                [](StudyOptions& o) { o.slots_per_trial = 4; });
  EXPECT_EQ(plan.base_config["train_micro_batch_size_per_gpu"], 4);
  EXPECT_EQ(plan.base_config["gradient_accumulation_steps"], 2);
  EXPECT_EQ(plan.base_config["train_batch_size"], 32);
  EXPECT_TRUE(noticed(plan, "train_batch_size 256 was written for another number of devices: here it is 32"));
}

TEST_F(PlanTest, BatchSizesOfThisNumberOfDevicesNeedNoLine) {
  const Plan plan = plan_with(R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4})",
                              [](StudyOptions& o) { o.slots_per_trial = 4; });
  EXPECT_EQ(plan.base_config["gradient_accumulation_steps"], 2);
  EXPECT_FALSE(noticed(plan, "another number of devices"));
}

TEST_F(PlanTest, KeysOfOtherProgramsAreKeptWithOneLine) {
  std::string config = R"({"pipe_parallel_size": 1, "_optimizer": {"type": "Adam"}, "data_type": "bf16")";
  for (int i = 0; i < 7; ++i) config += ", \"own_setting_" + std::to_string(i) + "\": 1";
  const Plan plan = plan_with(config + "}");
  EXPECT_EQ(plan.base_config["pipe_parallel_size"], 1);
  EXPECT_TRUE(noticed(plan, "no key 'pipe_parallel_size', '_optimizer', 'own_setting_0'"));
  EXPECT_TRUE(noticed(plan, "and 1 more: kept unchanged"));
  EXPECT_TRUE(noticed(plan, "no key 'data_type' and ignores it; did you mean 'data_types'?"));
}

TEST_F(PlanTest, AKeyOfANewerDeepSpeedIsNoMisspeltOne) {
  const Plan plan = plan_with(R"({"zero_optimization": {"stage3_max_live_tensors": 1, "reduce_bucket_size_mb": 2}})");
  EXPECT_EQ(plan.base_config["zero_optimization"]["stage3_max_live_tensors"], 1);
  EXPECT_TRUE(noticed(plan, "'zero_optimization.stage3_max_live_tensors': if DeepSpeed does not know it either"));
}

TEST_F(PlanTest, KeysThatTheNewestDeepSpeedRefusesAreNamedBeforeATrial) {
  const Plan plan = plan_with(R"({"amp": {"enabled": false}, "elasticity": {"enabled": false}})");
  EXPECT_TRUE(noticed(plan, "DeepSpeed after 0.19.6 refuses 'amp', 'elasticity'"));
  EXPECT_FALSE(noticed(plan_with(R"({"fp16": {"enabled": false}})"), "refuses '"));
  EXPECT_FALSE(noticed(plan_with(R"({"fp16": {"min_loss_scale": 0.5}})"), "fp16")) << "no version is known";
}

TEST_F(PlanTest, ValuesOfDeepSpeedsOwnThatAreCalledAutoAreKept) {
  const Plan plan = plan_with(R"({"zero_optimization": {"zenflow": {"select_strategy": "auto"}, "overlap_comm": "auto"},
                                  "expert_parallel": {"top_k": "auto"}})");
  EXPECT_EQ(plan.base_config["zero_optimization"]["zenflow"]["select_strategy"], "auto");
  EXPECT_EQ(plan.base_config["expert_parallel"]["top_k"], "auto");
  EXPECT_FALSE(plan.base_config["zero_optimization"].contains("overlap_comm"));
}

TEST_F(PlanTest, WithoutAnAcceleratorGradientsStayContiguous) {
  const Plan plan = plan_with(R"({"zero_optimization": {"stage": 2, "contiguous_gradients": false}})");
  EXPECT_EQ(plan.base_config["zero_optimization"]["contiguous_gradients"], true);
  EXPECT_TRUE(noticed(plan, "reduces no gradient"));
}

}  // namespace
}  // namespace dsat::host
