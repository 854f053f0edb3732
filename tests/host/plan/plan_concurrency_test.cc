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
  EXPECT_TRUE(noticed(alone, "port 29500"));
  const Plan beside = plan_of_script("deepspeed.init_distributed(distributed_port=int(os.environ['MASTER_PORT']))\n");
  EXPECT_EQ(beside.concurrency(), 2);
  EXPECT_FALSE(noticed(beside, "one at a time"));
}

class PlanOfScript : public PlanTest {
 protected:
  int concurrency_of(const std::string& text, const std::string& script = "train.py") {
    write_text(dir() / script, text);
    return plan_with(
               "{}",
               [&](StudyOptions& o) {
                 o.command = {script == "train.py" ? "python3" : "sh", script, "--deepspeed_config", "ds_config.json"};
                 o.slots = 4;
                 o.slots_per_trial = 1;
               })
        .concurrency();
  }
};

TEST_F(PlanOfScript, OneThatPicksItsDevicesOrPortRunsOneTrialAtATime) {
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

TEST_F(PlanOfScript, TheGuardOfAMainProgramIsNoCondition) {
  const std::string set = "os.environ['CUDA_VISIBLE_DEVICES'] = '0'\n", guard = "if __name__ == '__main__':\n";
  EXPECT_EQ(concurrency_of(guard + "  " + set), 1);
  EXPECT_EQ(concurrency_of(guard + "  import os\n\n  # mine\n  " + set), 1);
  EXPECT_EQ(concurrency_of("if alone():\n  " + guard + "    " + set), 4) << "the enclosing line is one";
  EXPECT_EQ(concurrency_of(guard + "  if alone():\n    " + set), 4);
  EXPECT_EQ(concurrency_of("if __name__ == '__main__' and alone():\n  " + set), 4);
  EXPECT_EQ(concurrency_of("if alone(): " + set), 4);
}

TEST_F(PlanOfScript, OnlyAnAssignmentToTheEnvironmentCountsInPython) {
  EXPECT_EQ(concurrency_of("\"\"\"Usage, in any environment:\n  CUDA_VISIBLE_DEVICES=0,1 torchrun x.py\n\"\"\"\n"), 4);
  EXPECT_EQ(concurrency_of("\"\"\"MASTER_PORT=29500 python x.py\"\"\"\n"), 4);
  EXPECT_EQ(concurrency_of("CUDA_VISIBLE_DEVICES = '0'\n"), 4) << "a name of the script's own";
  for (const char* text : {"environ['CUDA_VISIBLE_DEVICES']='0'\n", "os.putenv('CUDA_VISIBLE_DEVICES', '0')\n",
                           "os.environ.update(CUDA_VISIBLE_DEVICES='0')\n",
                           "os.environ.update({\n  'A': 'b',\n  'CUDA_VISIBLE_DEVICES': '0'})\n",
                           "env = os.environ.copy()\nenv[\"CUDA_VISIBLE_DEVICES\"] = \"0\"\n",
                           "run(x, env=dict(os.environ, CUDA_VISIBLE_DEVICES='0'))\n"}) {
    EXPECT_EQ(concurrency_of(text), 1) << text;
  }
  EXPECT_EQ(concurrency_of("os.environ.update(CUDA_VISIBLE_DEVICES='')\n"), 4) << "no device at all";
  EXPECT_EQ(concurrency_of("os.environ.setdefault('CUDA_VISIBLE_DEVICES', '0')\n"), 4) << "it keeps the trial's";
  EXPECT_EQ(concurrency_of("export CUDA_VISIBLE_DEVICES=0\npython3 x.py\n", "run.sh"), 1);
  EXPECT_EQ(concurrency_of("CUDA_VISIBLE_DEVICES=0 python3 x.py\n", "run.sh"), 1);
  EXPECT_EQ(concurrency_of("# CUDA_VISIBLE_DEVICES=0\npython3 x.py\n", "run.sh"), 4);
  EXPECT_EQ(concurrency_of("CUDA_VISIBLE_DEVICES=0 python3 x.py\n", "notes.txt"), 4);
}

TEST_F(PlanOfScript, AScriptWithoutAnEndingMayBeOfEitherLanguage) {
  EXPECT_EQ(concurrency_of("import os\nos.environ[\"CUDA_VISIBLE_DEVICES\"] = '0'\n", "launch"), 1);
  EXPECT_EQ(concurrency_of("export CUDA_VISIBLE_DEVICES=0\npython3 x.py\n", "launch"), 1);
  EXPECT_EQ(concurrency_of(std::string("\x7f"
                                       "ELF\0",
                                       5) +
                               "\nCUDA_VISIBLE_DEVICES=0\n",
                           "launch"),
            4)
      << "no text";
}

TEST_F(PlanOfScript, WhatPythonHandsToAShellCounts) {
  EXPECT_EQ(concurrency_of("subprocess.run('CUDA_VISIBLE_DEVICES=0 python3 x.py', shell=True)\n"), 1);
  EXPECT_EQ(concurrency_of("os.system(\"CUDA_VISIBLE_DEVICES=0 python3 x.py\")\n"), 1);
  EXPECT_EQ(concurrency_of("print('CUDA_VISIBLE_DEVICES=0 python3 x.py')\n"), 4);
}

TEST_F(PlanOfScript, BehindAndAnAssignmentDependsOnWhatStandsBefore) {
  const auto of_shell = [&](const char* line) { return concurrency_of(std::string(line) + "\n", "run.sh"); };
  EXPECT_EQ(of_shell("cd src && set -e && export CUDA_VISIBLE_DEVICES=0"), 1);
  EXPECT_EQ(of_shell("command -v nvidia-smi >/dev/null && export CUDA_VISIBLE_DEVICES=0"), 4);
  EXPECT_EQ(of_shell("cd src && have_gpu && export CUDA_VISIBLE_DEVICES=0"), 4);
  EXPECT_EQ(of_shell("have_gpu || { echo none; export CUDA_VISIBLE_DEVICES=0; }"), 4);
}

TEST_F(PlanTest, ConcurrencyIsWhatSlotsAllow) {
  EXPECT_EQ(plan_with("{}", [](StudyOptions& o) { o.slots_per_trial = 5; }).concurrency(), 3);
  EXPECT_EQ(plan_with("{}", [](StudyOptions& o) { o.max_slots = 4; }).concurrency(), 4);
  EXPECT_EQ(plan_with("{}", [](StudyOptions& o) { o.max_concurrent_trials = 2; }).concurrency(), 2);
}

}  // namespace
}  // namespace dsat::host
