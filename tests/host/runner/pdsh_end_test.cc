// A trial on several hosts is ended without the launcher's own way, which ends what is not this trial's.
#include "runner/pdsh_end.h"

#include <gmock/gmock.h>

#include "host/runner/runner_fixture.h"

namespace dsat::host {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Matches;

const std::vector<Slot> kTwoHosts{{"0", 0, {}, "w1"}, {"1", 1, {}, "w1"}, {"0", 0, {}, "w2"}};

Argv end_of(Argv options, const std::vector<Slot>& slots = kTwoHosts, const Environment& environment = {}) {
  options.insert(options.begin(), "deepspeed");
  options.insert(options.end(), {"train.py", "--launcher", "of the script"});
  return pdsh_end_command(options, slots, environment);
}

TEST(PdshEnd, CallsPdshAsTheLauncherDoes) {
  const Argv command = end_of({"--master_port", "29511", "--ssh_port", "2222", "--launcher_args", "-l me"}, kTwoHosts,
                              {"PDSH_SSH_ARGS_APPEND=-q"});
  ASSERT_EQ(command.size(), 9u);
  EXPECT_THAT(
      Argv(command.begin(), command.end() - 1),
      ElementsAre("env", "PDSH_RCMD_TYPE=ssh", "PDSH_SSH_ARGS_APPEND=-q -p 2222", "pdsh", "-w", "w1,w2", "-l", "me"));
}

TEST(PdshEnd, TheTrialsOwnLaunchersAloneFitThePattern) {
  const std::string call = end_of({"--master_port", "29511"}).back();
  ASSERT_EQ(call.rfind("pkill -f '", 0), 0u) << call;
  const std::string pattern = call.substr(10, call.size() - 11);  // POSIX's extended form, in pkill and here
  const auto fits = [&](const std::string& before, const std::string& port) {
    const std::string launcher = "/venv/bin/python3 -u -m deepspeed.launcher.launch --world_info=e30= --node_rank=0";
    const std::string command = before + launcher + " --master_addr=w1 --master_port=" + port + " train.py";
    return Matches(ContainsRegex(pattern))(command);
  };
  EXPECT_TRUE(fits("", "29511"));
  EXPECT_FALSE(fits("", "29512")) << "another trial, or another job";
  EXPECT_FALSE(fits("", "295110"));
  EXPECT_FALSE(fits("pdsh -S -f 1024 -w w1,w2 cd /job; ", "29511")) << "it returns by itself";
  EXPECT_FALSE(fits("bash -c cd /job; ", "29511"));
}

TEST(PdshEnd, WhatIsNotBelowPdshGetsTerm) {
  std::vector<Slot> many;
  for (int host = 0; host < 25; ++host) many.push_back({"0", 0, {}, "w" + std::to_string(host)});
  EXPECT_THAT(end_of({"--master_port", "29511"}, many), IsEmpty()) << "the port would be too far behind for pkill";
  const std::vector<Slot> one_host{{"0", 0, {}, "w1"}};
  EXPECT_THAT(end_of({"--master_port", "29511"}, one_host), IsEmpty()) << "started on this machine";
  EXPECT_FALSE(end_of({"--master_port", "29511", "--force_multi"}, one_host).empty());
  EXPECT_THAT(end_of({"--master_port", "29511", "--launcher", "openmpi"}), IsEmpty());
  EXPECT_THAT(end_of({"--master_port", "29511", "--force_multi"}, {{"0", 0, {}}}), IsEmpty());
  EXPECT_THAT(pdsh_end_command({"torchrun", "--master_port", "29511", "train.py"}, kTwoHosts, {}), IsEmpty());
}

// The stand-ins: a launcher that notes TERM and waits for what it has started, and a pdsh that ends that.
TEST_F(RunnerTest, ATrialOnSeveralHostsEndsWithoutTermToItsLauncher) {
  const std::string folder = dir().string();
  write_program(dir() / "deepspeed", "#!/bin/sh\ntrap 'echo TERM >>" + folder + "/term' TERM\nmkfifo " + folder +
                                         "/pipe\necho ready\nread line <" + folder + "/pipe\n");
  write_program(dir() / "pdsh", "#!/bin/sh\necho \"$*\" >>" + folder + "/calls\necho end >" + folder + "/pipe\n");
  set_variable(environment_, "PATH", folder + ":" + *get_variable(environment_, "PATH"));
  adjust = [&](TrialRunnerOptions& options) {
    options.slots.hostfile = dir() / "hosts";
    options.slots.slots = {{"0", 0, {}, "w1"}, {"0", 0, {}, "w2"}};
    options.slots.shape = TrialShape::even(2, 1);
    options.term_grace = std::chrono::minutes(10);
  };
  make_runner_for({"deepspeed", "train.py", "--deepspeed_config", "user.json"});
  runner_->start(spec(0));
  wait_for_file(trial_dir(0) / "stdout.log");
  runner_->stop(0, false);
  EXPECT_EQ(wait(0).outcome, Outcome::stopped);
  EXPECT_THAT(read_text(dir() / "calls"), HasSubstr("-w w1,w2 pkill -f "));
  EXPECT_FALSE(std::filesystem::exists(dir() / "term"));
}

}  // namespace
}  // namespace dsat::host
