// Options behind the script: which of them are meant for dsat-host, as far as the script tells.
#include "options/misplaced_option.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/host_options.h"
#include "dsat/base/files.h"
#include "support/temp_dir.h"

namespace dsat::cli {
namespace {

using ::testing::HasSubstr;

class MisplacedOption : public TempDirTest {
 protected:
  MisplacedOption() { write_text(dir() / "train.py", "add_argument('--metric')\nadd_argument('--random_seed')\n"); }
  std::optional<std::string> notice(const Tokens& command) const {
    return notice_of_misplaced_option(tune_options(), command, dir());
  }
};

TEST_F(MisplacedOption, IsNamed) {
  EXPECT_THAT(notice({"python3", "train.py", "--max-trials", "3"}).value_or(""), HasSubstr("'--max-trials'"));
  EXPECT_TRUE(notice({"python3", "train.py", "--lr", "1", "--max-trials=3"}));
}

TEST_F(MisplacedOption, IsNoneThatTheScriptNames) {
  EXPECT_FALSE(notice({"python3", "train.py", "--metric", "loss", "--random-seed", "3"}));
}

TEST_F(MisplacedOption, IsNoneOfALauncherOrWithoutAValue) {
  EXPECT_FALSE(notice({"deepspeed", "--num_gpus", "2", "--hostfile", "h", "train.py"}));
  EXPECT_FALSE(notice({"python3", "train.py", "--quiet", "--output_dir", "out", "3"}));
  EXPECT_FALSE(notice({"./train", "--max-trials", "3"})) << "whose words these are is not known";
}

}  // namespace
}  // namespace dsat::cli
