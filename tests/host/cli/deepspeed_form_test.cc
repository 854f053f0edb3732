#include "deepspeed_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "error_of.h"
#include "host_options.h"

namespace dsat::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class DeepspeedForm : public ::testing::Test {
 protected:
  DeepspeedForm() {
    fs::create_directories(dir_);
    std::ofstream(dir_ / "train.py") << "\n";
  }
  ~DeepspeedForm() override { fs::remove_all(dir_); }

  Tokens command(const Tokens& arguments) const {
    const OptionSet set = tune_options();
    const Split parts = split(set, arguments, FreeTokens::end_options);
    const Values values(set, parts.options);
    EXPECT_TRUE(autotuning_of(values));
    return deepspeed_command(values, parts.rest, dir_);
  }
  std::string refusal(const Tokens& arguments) const {
    return error_of([&] { command(arguments); });
  }

  const fs::path dir_ = fs::temp_directory_path() / ("dsat-form-" + std::to_string(getpid()));
};

std::optional<Autotuning> mode(const Tokens& arguments) {
  const OptionSet set = tune_options();
  return autotuning_of(Values(set, split(set, arguments, FreeTokens::end_options).options));
}

TEST(AutotuningOf, IsAskedForByName) {
  EXPECT_EQ(mode({"--autotuning", "tune", "x"}), Autotuning::tune);
  EXPECT_EQ(mode({"--max-trials", "3", "--autotuning=run", "x"}), Autotuning::run);
  EXPECT_EQ(mode({"--", "deepspeed", "--autotuning", "tune"}), std::nullopt);
  EXPECT_THAT(error_of([] { mode({"--autotuning", "train.py"}); }), HasSubstr("'train.py' is none of tune, run"));
}

TEST(AutotuningOf, TheLaunchersOptionsAreNotOnesOfAPlainCommand) {
  EXPECT_THAT(error_of([] {
                mode({"--num_gpus", "2", "x"});
              }),
              AllOf(HasSubstr("dsat-host --autotuning tune --num_gpus"), HasSubstr("-- deepspeed --num_gpus")));
  EXPECT_THAT(error_of([] { mode({"-H", "hosts", "x"}); }), HasSubstr("--hostfile is the deepspeed launcher's"));
}

TEST_F(DeepspeedForm, BecomesTheLaunchersCommand) {
  EXPECT_THAT(command({"--autotuning", "tune", "train.py", "--deepspeed", "c.json", "--num_gpus", "x"}),
              ElementsAre("deepspeed", "train.py", "--deepspeed", "c.json", "--num_gpus", "x"));
  EXPECT_THAT(command({"--autotuning", "run", "--num-gpus=8", "-i", "localhost:0,1", "--max-trials", "3",
                       "--no_local_rank", "train.py"}),
              ElementsAre("deepspeed", "--num_gpus", "8", "--include", "localhost:0,1", "--no_local_rank", "train.py"));
  EXPECT_THAT(command({"--autotuning", "tune", "--module", "pkg.train", "-x"}),
              ElementsAre("deepspeed", "--module", "pkg.train", "-x"));
}

TEST_F(DeepspeedForm, WantsAScriptThatIsThere) {
  EXPECT_THAT(refusal({"--autotuning", "tune"}), HasSubstr("no SCRIPT to tune"));
  EXPECT_THAT(refusal({"--autotuning", "tune", "deepspeed", "train.py"}), HasSubstr("no script 'deepspeed'"));
}

TEST_F(DeepspeedForm, ALauncherIsOneThatThereIs) {
  EXPECT_THAT(refusal({"--autotuning", "tune", "--launcher", "pigeon", "train.py"}), HasSubstr("pdsh"));
  EXPECT_EQ(refusal({"--autotuning", "tune", "--launcher", "pdsh", "train.py"}), "no error") << "one host needs none";
}

}  // namespace
}  // namespace dsat::cli
