// Options of the deepspeed launcher on dsat-host's command line, and the command that they become.
#include "deepspeed/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/host_options.h"
#include "support/error_of.h"
#include "support/temp_dir.h"

namespace dsat::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class DeepspeedForm : public ::testing::Test {
 protected:
  DeepspeedForm() { write_text(dir_ / "train.py", "\n"); }

  Tokens command(const Tokens& arguments) const {
    const OptionSet set = tune_options();
    const Split parts = split(set, arguments, Grammar::command);
    const Values values(set, parts.options);
    EXPECT_TRUE(autotuning_of(values));
    return deepspeed_command(values, parts.rest, dir_);
  }
  std::string refusal(const Tokens& arguments) const {
    return error_of([&] { command(arguments); });
  }

  const TempDir temp_;
  const fs::path dir_ = temp_.path();
};

std::optional<Autotuning> mode(const Tokens& arguments) {
  const OptionSet set = tune_options();
  return autotuning_of(Values(set, split(set, arguments, Grammar::command).options));
}

TEST(AutotuningOf, IsAskedForByName) {
  EXPECT_EQ(mode({"--autotuning", "tune", "x"}), Autotuning::tune);
  EXPECT_EQ(mode({"--max-trials", "3", "--autotuning=run", "x"}), Autotuning::run);
  EXPECT_EQ(mode({"--", "deepspeed", "--autotuning", "tune"}), std::nullopt);
  EXPECT_THAT(error_of([] {
                mode({"--autotuning", "train.py"});
              }),
              AllOf(HasSubstr("--autotuning train.py"), HasSubstr("tune or run")));
}

TEST(AutotuningOf, TheLaunchersOptionsAreNotOnesOfAPlainCommand) {
  EXPECT_THAT(error_of([] {
                mode({"--master_port", "2000", "x"});
              }),
              AllOf(HasSubstr("dsat-host --autotuning tune --master_port"), HasSubstr("-- deepspeed --master_port")));
}

TEST_F(DeepspeedForm, BecomesTheLaunchersCommand) {
  EXPECT_THAT(command({"--autotuning", "tune", "train.py", "--deepspeed", "c.json", "--num_gpus", "x"}),
              ElementsAre("deepspeed", "train.py", "--deepspeed", "c.json", "--num_gpus", "x"));
  EXPECT_THAT(command({"--autotuning", "run", "--master-port=2000", "--ssh_port", "23", "--max-trials", "3",
                       "--no_local_rank", "train.py"}),
              ElementsAre("deepspeed", "--master_port", "2000", "--no_local_rank", "--ssh_port", "23", "train.py"));
  EXPECT_THAT(command({"--autotuning", "tune", "--module", "pkg.train", "-x"}),
              ElementsAre("deepspeed", "--module", "pkg.train", "-x"));
}

TEST_F(DeepspeedForm, WantsAScriptThatIsThere) {
  EXPECT_THAT(refusal({"--autotuning", "tune"}), HasSubstr("no SCRIPT"));
  EXPECT_THAT(refusal({"--autotuning", "tune", "deepspeed", "train.py"}), HasSubstr("no script 'deepspeed'"));
}

TEST_F(DeepspeedForm, ALauncherIsOneThatThereIs) {
  EXPECT_THAT(refusal({"--autotuning", "tune", "--launcher", "pigeon", "train.py"}), HasSubstr("pdsh"));
  for (const char* name : {"pdsh", "OpenMPI"}) {
    EXPECT_EQ(refusal({"--autotuning", "tune", "--launcher", name, "train.py"}), "no error") << "one host needs none";
  }
}

TEST_F(DeepspeedForm, LauncherArgumentsAreAValue) {
  EXPECT_THAT(command({"--autotuning", "tune", "--launcher_args", "--mca btl ^openib", "train.py"}),
              ElementsAre("deepspeed", "--launcher_args=--mca btl ^openib", "train.py"));
  EXPECT_THAT(refusal({"--autotuning", "tune", "--launcher_args", "--verbose", "train.py"}),
              HasSubstr("needs a value"));
}

}  // namespace
}  // namespace dsat::cli
