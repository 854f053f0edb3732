// Options into a plan: how many trials run side by side, and which commands run one at a time.
#include "plan_fixture.h"

namespace dsat::host {
namespace {

TEST_F(PlanTest, TrialsOfACommandThatNamesItsDevicesRunOneAtATime) {
  const auto plan_of_command = [&](const std::string& variable) {
    return plan_with("{}", [&](StudyOptions& o) {
      o.command = {"env", variable, "python3", "train.py", "--deepspeed_config", "ds_config.json"};
      o.slots = 4;
      o.slots_per_trial = 1;
      o.max_concurrent_trials = 4;
    });
  };
  const Plan alone = plan_of_command("CUDA_VISIBLE_DEVICES=2,3");
  EXPECT_EQ(alone.concurrency(), 1);
  EXPECT_TRUE(noticed(alone, "one at a time: the command sets CUDA_VISIBLE_DEVICES itself"));
  EXPECT_EQ(plan_of_command("OMP_NUM_THREADS=2").concurrency(), 4);
}

TEST_F(PlanTest, TrialsOfALauncherThatIsOutOfReachRunOneAtATime) {
  const auto plan_of_script = [&](const std::string& script) {
    write_text(dir() / "run.sh", script);
    return plan_with("{}", [](StudyOptions& o) {
      o.command = {"/bin/sh", "run.sh", "--deepspeed_config", "ds_config.json"};
      o.slots = 4;
      o.slots_per_trial = 1;
      o.max_concurrent_trials = 4;
    });
  };
  const Plan alone = plan_of_script("deepspeed --num_gpus 1 train.py \"$@\"\n");
  EXPECT_EQ(alone.concurrency(), 1);
  EXPECT_TRUE(noticed(alone, "one at a time: the launcher in run.sh"));
  const Plan beside = plan_of_script("python3 train.py \"$@\"\n");
  EXPECT_EQ(beside.concurrency(), 4);
  EXPECT_FALSE(noticed(beside, "one at a time"));
}

TEST_F(PlanTest, RanksThatAskMpiForTheirPlaceRunOneTrialAtATime) {
  const auto plan_of_script = [&](const std::string& script) {
    write_text(dir() / "train.py", script);
    return plan_with("{}", [](StudyOptions& o) {
      o.command = {"/usr/bin/env", "mpirun", "-n", "2", "python3", "train.py", "--deepspeed_config", "ds_config.json"};
      o.slots = 4;
      o.max_concurrent_trials = 2;
    });
  };
  const Plan alone = plan_of_script("deepspeed.init_distributed()\n");
  EXPECT_EQ(alone.concurrency(), 1);
  EXPECT_TRUE(noticed(alone, "one at a time: below mpirun DeepSpeed takes port 29500"));
  const Plan beside = plan_of_script("deepspeed.init_distributed(distributed_port=int(os.environ['MASTER_PORT']))\n");
  EXPECT_EQ(beside.concurrency(), 2);
  EXPECT_FALSE(noticed(beside, "one at a time"));
}

TEST_F(PlanTest, AScriptThatPicksItsDevicesOrPortRunsOneTrialAtATime) {
  const auto concurrency_of = [&](const std::string& script) {
    write_text(dir() / "train.py", script);
    return plan_with("{}",
                     [](StudyOptions& o) {
                       o.command = {"python3", "train.py", "--deepspeed_config", "ds_config.json"};
                       o.slots = 4;
                       o.slots_per_trial = 1;
                     })
        .concurrency();
  };
  EXPECT_EQ(concurrency_of("os.environ[\"CUDA_VISIBLE_DEVICES\"] = '0'\n"), 1);
  EXPECT_EQ(concurrency_of("# os.environ[\"CUDA_VISIBLE_DEVICES\"] = '0'\n"), 4) << "a comment";
  EXPECT_EQ(concurrency_of("print(os.environ['CUDA_VISIBLE_DEVICES'] == '0')\n"), 4) << "it only looks";
  EXPECT_EQ(concurrency_of("os.environ['CUDA_VISIBLE_DEVICES'] = ''\n"), 4) << "no device at all";
  EXPECT_EQ(concurrency_of("os.environ['MASTER_PORT'] = '12355'\n"), 1);
  EXPECT_EQ(concurrency_of("os.environ.setdefault('MASTER_PORT', '12355')\n"), 4);
  EXPECT_EQ(concurrency_of("os.environ['MASTER_PORT'] = str(free_port())\n"), 4);
  EXPECT_EQ(concurrency_of("def setup():\n  os.environ['MASTER_PORT'] = '12355'\n"), 1) << "as in PyTorch's tutorial";
  EXPECT_EQ(concurrency_of("if alone():\n\n  os.environ['MASTER_PORT'] = '12355'\n"), 4) << "on a condition";
  EXPECT_EQ(concurrency_of("if 'MASTER_PORT' not in os.environ:\n  os.environ['MASTER_PORT'] = '12355'\n"), 4);
}

TEST_F(PlanTest, ConcurrencyIsWhatSlotsAllow) {
  EXPECT_EQ(plan_with("{}", [](StudyOptions& o) { o.slots_per_trial = 5; }).concurrency(), 3);
  EXPECT_EQ(plan_with("{}", [](StudyOptions& o) { o.max_slots = 4; }).concurrency(), 4);
  EXPECT_EQ(plan_with("{}", [](StudyOptions& o) { o.max_concurrent_trials = 2; }).concurrency(), 2);
}

}  // namespace
}  // namespace dsat::host
