// Entrypoints of experiment files: how they are cut, which launchers are replaced, what is refused.
#include "determined/entrypoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/temp_dir.h"

namespace dsat::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(EntrypointWords, AStringIsCutAsAShellDoes) {
  EXPECT_THAT(entrypoint_words("python3  train.py --x 'a b' --y=\"c \\\"d\\\" \\n\" e\\ f ''"),
              ElementsAre("python3", "train.py", "--x", "a b", "--y=c \"d\" \\n", "e f", ""));
  EXPECT_THAT(entrypoint_words("python3 train.py \\\n  --steps 3\n"),
              ElementsAre("python3", "train.py", "--steps", "3"));
  EXPECT_THAT(entrypoint_words("python3 a#b '$HOME' b~ x=~ '~'"),
              ElementsAre("python3", "a#b", "$HOME", "b~", "x=~", "~"));
}

TEST(EntrypointWords, VariablesAndExecBeforeTheCommandMeanWhatTheyMeanToAShell) {
  EXPECT_THAT(entrypoint_words("A=1 B='x y' exec python3 train.py"),
              ElementsAre("env", "A=1", "B=x y", "python3", "train.py"));
  EXPECT_THAT(entrypoint_words("exec python3 train.py a=1 exec"), ElementsAre("python3", "train.py", "a=1", "exec"));
  EXPECT_THAT(error_of([] { entrypoint_words("A=1"); }), HasSubstr("is empty"));
}

TEST(EntrypointWords, VariablesBeforeTheCommandAreTakenAsTheExperimentsOwn) {
  std::vector<std::string> words = entrypoint_words("A=1 PATH=/b B='x y' python3 train.py a=1");
  EXPECT_THAT(take_variables(words), ElementsAre("A=1", "B=x y"));
  EXPECT_THAT(words, ElementsAre("env", "PATH=/b", "python3", "train.py", "a=1"));  // python3 is looked for there
  words = {"env", "A=1", "A=2", "train"};
  EXPECT_THAT(take_variables(words), ElementsAre("A=1", "A=2"));
  EXPECT_THAT(words, ElementsAre("train"));
  for (const std::vector<std::string>& others :
       {std::vector<std::string>{"env", "-i", "A=1", "train"}, {"env", "A=1", "a.b=1", "train"}, {"train", "A=1"}}) {
    words = others;
    EXPECT_THAT(take_variables(words), ElementsAre());
    EXPECT_EQ(words, others);
  }
}

TEST(EntrypointWords, AListIsTakenAsItIs) {
  EXPECT_THAT(entrypoint_words(Json::parse(R"(["python3", "train.py", "a b; $c", "~", 3, true])")),
              ElementsAre("python3", "train.py", "a b; $c", "~", "3", "true"));
}

TEST(EntrypointWords, AShellsLanguageIsRefused) {
  for (const char* text : {"a; b", "a && b", "a | b", "a > b", "a $HOME", "a \"$HOME\"", "a `b`", "a *", "(a)", "a\nb",
                           "a ~/b", "A=~/b c"}) {
    EXPECT_THAT(error_of([&] { entrypoint_words(text); }), HasSubstr("holds shell syntax")) << text;
  }
  EXPECT_THAT(error_of([] { entrypoint_words("a 'b"); }), HasSubstr("has a '"));
  EXPECT_THAT(error_of([] { entrypoint_words("a \\"); }), HasSubstr("backslash"));
}

TEST(EntrypointWords, ThereIsSomethingToRun) {
  for (const Json& nothing : {Json(""), Json("  \n"), Json::array(), Json::array({""})}) {
    EXPECT_THAT(error_of([&] { entrypoint_words(nothing); }), HasSubstr("is empty")) << nothing;
  }
  EXPECT_THAT(error_of([] { entrypoint_words(Json::parse("[[1]]")); }), HasSubstr("list of words"));
}

TEST(EntrypointWords, ATrialClassAloneIsStartedByDeepSpeedsLaunchModule) {
  EXPECT_THAT(entrypoint_words("model_def:MyTrial"),
              ElementsAre("python3", "-m", "determined.launch.deepspeed", "--trial", "model_def:MyTrial"));
  EXPECT_THAT(entrypoint_words("/bin/model:x"), ElementsAre("/bin/model:x"));
}

TEST(EntrypointWords, HorovodIsRefusedWithTheReason) {
  for (const char* text :
       {"python3 -m determined.launch.horovod python3 train.py", "/usr/bin/horovodrun -np 2 train.py"}) {
    EXPECT_THAT(error_of([&] { entrypoint_words(text); }), HasSubstr("starts through Horovod")) << text;
  }
}

class LaunchModule : public ::testing::Test {
 protected:
  void install(const char* program) { write_program(tools_ / program, "#!/bin/sh\n"); }
  LaunchCommand replace(std::vector<std::string> words, int slots = 2) {
    return replace_launch_module({std::move(words), slots, "/", {"PATH=" + tools_.string()}});
  }
  const std::vector<std::string> deepspeed_{"python3", "-m",       "determined.launch.deepspeed",
                                            "python3", "train.py", "-x"};
  const std::vector<std::string> torch_{"env",     "A=1",     "python", "-m", "determined.launch.torch_distributed",
                                        "python3", "train.py"};

 private:
  const TempDir temp_;
  const fs::path tools_ = temp_.path();
};

TEST_F(LaunchModule, DeepSpeedsLauncherComesFirst) {
  install("deepspeed");
  install("torchrun");
  const LaunchCommand launch = replace(deepspeed_);
  EXPECT_THAT(launch.words, ElementsAre("deepspeed", "--num_gpus", "2", "--no_python", "--no_local_rank", "python3",
                                        "train.py", "-x"));
  EXPECT_EQ(launch.notice, "");
}

TEST_F(LaunchModule, TorchrunIsSecondAndSaysSo) {
  install("torchrun");
  const LaunchCommand launch = replace(deepspeed_);
  EXPECT_THAT(launch.words,
              ElementsAre("torchrun", "--no_python", "--nproc_per_node", "2", "python3", "train.py", "-x"));
  EXPECT_THAT(launch.notice, AllOf(HasSubstr("torchrun starts"), HasSubstr("determined.launch.deepspeed")));
  EXPECT_THAT(replace(torch_).words,
              ElementsAre("env", "A=1", "torchrun", "--no_python", "--nproc_per_node", "2", "python3", "train.py"));
  EXPECT_EQ(replace(torch_).notice, "");
}

TEST_F(LaunchModule, WithoutALauncherTheScriptRunsByItselfOnOneSlot) {
  const LaunchCommand launch = replace(deepspeed_, 1);
  EXPECT_THAT(launch.words, ElementsAre("python3", "train.py", "-x"));
  EXPECT_THAT(launch.notice, HasSubstr("no launcher"));
  EXPECT_THAT(error_of([&] { replace(deepspeed_, 2); }), HasSubstr("deepspeed nor torchrun"));
}

TEST_F(LaunchModule, ATrialClassIsTrainedByTheHarness) {
  install("deepspeed");
  const auto program = ElementsAre("deepspeed", "--num_gpus", "2", "--no_python", "--no_local_rank", "python3.11", "-m",
                                   "determined.exec.harness", "--train-entrypoint", "model_def:T", "-x");
  EXPECT_THAT(replace({"python3.11", "-m", "determined.launch.deepspeed", "--trial", "model_def:T", "-x"}).words,
              program);
  EXPECT_THAT(replace({"python3.11", "-m", "determined.launch.deepspeed", "--trial=model_def:T", "-x"}).words, program);
  for (const std::vector<std::string>& bad :
       {std::vector<std::string>{"--trial"}, {"--trial", "model_def"}, {"--trial", ":T"}, {"--trial=model_def:"}}) {
    std::vector<std::string> words{"python3", "-m", "determined.launch.deepspeed"};
    words.insert(words.end(), bad.begin(), bad.end());
    EXPECT_THAT(error_of([&] { replace(words); }), HasSubstr("give module:Class"));
  }
}

TEST_F(LaunchModule, OptionsOfTheLauncherStandBeforeTwoDashes) {
  install("deepspeed");
  install("torchrun");
  EXPECT_THAT(
      replace({"python3", "-m", "determined.launch.deepspeed", "--master_addr", "h", "--", "--trial", "m:T"}).words,
      ElementsAre("deepspeed", "--master_addr", "h", "--num_gpus", "2", "--no_python", "--no_local_rank", "python3",
                  "-m", "determined.exec.harness", "--train-entrypoint", "m:T"));
  EXPECT_THAT(replace({"python3", "-m", "determined.launch.torch_distributed", "--standalone", "--", "t.py"}).words,
              ElementsAre("torchrun", "--standalone", "--no_python", "--nproc_per_node", "2", "t.py"));
  EXPECT_THAT(replace({"python3", "-m", "determined.launch.deepspeed", "t.py", "--", "-x"}).words,
              ElementsAre("deepspeed", "--num_gpus", "2", "--no_python", "--no_local_rank", "t.py", "--", "-x"))
      << "they are the script's";
}

TEST_F(LaunchModule, TheInterpretersSwitchesGoWithIt) {
  install("deepspeed");
  EXPECT_THAT(replace({"env", "python3", "-u", "-W", "ignore", "-m", "determined.launch.deepspeed", "a.py"}).words,
              ElementsAre("env", "deepspeed", "--num_gpus", "2", "--no_python", "--no_local_rank", "a.py"));
  EXPECT_THAT(replace({"python3", "-u", "-m", "determined.launch.deepspeed", "--trial", "model_def:T", "-x"}).words,
              ElementsAre("deepspeed", "--num_gpus", "2", "--no_python", "--no_local_rank", "python3", "-u", "-m",
                          "determined.exec.harness", "--train-entrypoint", "model_def:T", "-x"));
}

TEST_F(LaunchModule, WhatNeedsDeterminedIsRefused) {
  EXPECT_THAT(error_of([&] {
                replace({"python3", "-m", "determined.launch.ray", "python3", "train.py"});
              }),
              AllOf(HasSubstr("determined.launch.ray"), HasSubstr("needs Determined")));
  EXPECT_THAT(error_of([&] { replace({"python3", "-m", "determined.launch.deepspeed"}); }), HasSubstr("has no script"));
}

TEST_F(LaunchModule, AnyOtherCommandStays) {
  EXPECT_THAT(replace({"deepspeed", "train.py"}).words, ElementsAre("deepspeed", "train.py"));
  EXPECT_THAT(replace({"python3", "-m", "determined"}).words, ElementsAre("python3", "-m", "determined"));
}

}  // namespace
}  // namespace dsat::cli
